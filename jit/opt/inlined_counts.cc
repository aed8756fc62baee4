#include "jit/opt/inlined_counts.h"

#include <algorithm>

namespace uptier::jit {
namespace {

bool comes_first(const InlinedCount& a, const InlinedCount& b) {
  return a.body != b.body ? a.body < b.body : a.site < b.site;
}

}  // namespace

std::vector<InlinedCount> place_inlined_counts(const Function& f, uint32_t offset) {
  std::vector<InlinedCount> counts;
  for (Block b : f.layout) {
    for (InstId id : f.block(b).insts) {
      const Inst& i = f.inst(id);
      if (is_block_probe(i) && i.body != 0 && !resumes(i)) counts.push_back({0, i.aux, i.body});
    }
  }
  std::ranges::sort(counts, comes_first);
  auto copies = std::ranges::unique(counts);
  counts.erase(copies.begin(), copies.end());
  // A body is counted as a whole or not at all.
  if (counts.size() > kMostInlinedCounts) {
    uint32_t body = counts[kMostInlinedCounts].body;
    std::erase_if(counts, [&](const InlinedCount& c) { return c.body >= body; });
  }
  for (InlinedCount& c : counts) {
    c.offset = offset;
    offset += 8;
  }
  return counts;
}

const InlinedCount* find_inlined_count(const std::vector<InlinedCount>& counts, uint32_t body,
                                       SiteId site) {
  InlinedCount key{0, site, body};
  auto at = std::ranges::lower_bound(counts, key, comes_first);
  return at != counts.end() && at->body == body && at->site == site ? &*at : nullptr;
}

}  // namespace uptier::jit
