#include "jit/probes/probe_law.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <utility>

#include "jit/ir/tally.h"

namespace uptier::jit {

BlockExecutions block_executions(const Interpreter& ran, const Module& built) {
  BlockExecutions all;
  for (uint32_t m = 0; m < built.functions.size(); ++m) {
    std::vector<uint64_t>& blocks = all.emplace_back(built.functions[m].block_sites);
    if (m >= ran.methods()) continue;
    const auto seen = ran.site_counts(MethodId(m));
    std::copy_n(seen.begin(), std::min(seen.size(), blocks.size()), blocks.begin());
  }
  return all;
}

BlockSet no_blocks(const Module& built) {
  BlockSet none;
  for (const Function& f : built.functions) none.emplace_back(f.block_sites);
  return none;
}

void add_unknown_blocks(const Function& f, MethodId self, BlockSet& to) {
  std::set<std::pair<uint32_t, SiteId>> starts, merged;  // by body
  for (Block b : f.layout) {
    for (InstId id : f.block(b).insts) {
      const Inst& i = f.inst(id);
      if (is_remnant(i)) merged.insert({i.body, i.aux});
      if (is_block_probe(i) && !resumes(i)) starts.insert({i.body, i.aux});
    }
  }
  for (uint32_t body = 0; body <= f.inlined.size(); ++body) {
    const uint32_t m = body == 0 ? self.index() : f.inlined[body - 1].method.index();
    assert(m < to.size());
    for (SiteId s = 1; s <= to[m].size(); ++s) {
      if (!starts.contains({body, s}) || merged.contains({body, s})) to[m][s - 1] = true;
    }
  }
}

std::string ProbeLaw::text() const {
  return "block " + std::to_string(site) + " has " + std::to_string(got) + " of " +
         std::to_string(want) + " executions";
}

ProbeLaw check_probe_law(const BlockExecutions& want, const BlockExecutions& got,
                         const BlockSet& unknown) {
  assert(got.size() == want.size() && unknown.size() == want.size());
  ProbeLaw law;
  for (uint32_t m = 0; m < want.size(); ++m) {
    for (size_t b = 0; b < want[m].size(); ++b) {
      const uint64_t is = got[m][b], was = want[m][b];
      if (is == was) continue;
      if (is < was && unknown[m][b]) {
        law.lost += was - is;
      } else if (std::exchange(law.holds, false)) {
        law.method = MethodId(m);
        law.site = static_cast<SiteId>(b + 1);
        law.got = is;
        law.want = was;
      }
    }
  }
  return law;
}

}  // namespace uptier::jit
