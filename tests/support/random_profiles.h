// random_profiles.h: random profiles of random programs; they need not be true.
#pragma once

#include <functional>
#include <vector>

#include "jit/analysis/loop_forest.h"
#include "jit/frontend/branch_probes.h"
#include "jit/frontend/select_probes.h"
#include "jit/ir/module.h"
#include "jit/opt/inlinee.h"
#include "tests/support/random.h"

namespace uptier::test {

// Notes random outcomes for selections and short branches. Returns the number of sites noted.
inline size_t note_any_turns(jit::Function& f, Random& r) {
  jit::LoopForest forest = jit::find_loop_forest(f);
  jit::place_select_probes(f, forest);
  jit::place_branch_probes(f, forest);
  std::vector<jit::SelectTurns> seen;
  for (SiteId site : jit::turn_sites(f)) {
    seen.push_back({site, {}});
    for (uint64_t& n : seen.back().counts) n = r.chance(50) ? 0 : r.next() >> r.below(64);
  }
  jit::note_turns(f, seen);
  return seen.size();
}

// Returns random targets for each indirect call of a function. `entry` gives the addresses of
// methods.
inline std::vector<jit::SiteTargets> any_targets(
    const jit::Function& f, const jit::Module& module, Random& r,
    const std::function<const void*(MethodId)>& entry) {
  std::vector<jit::SiteTargets> all;
  for (Block b : f.layout) {
    for (jit::InstId id : f.block(b).insts) {
      const jit::Inst& i = f.inst(id);
      if (i.op != Opcode::kCallIndirect) continue;
      jit::SiteTargets t{i.site, 100, {}};
      for (uint32_t m = 0; m < module.functions.size(); ++m) {
        const jit::Function& to = module.functions[m];
        if (!r.chance(60)) continue;
        t.targets.push_back(
            {MethodId(m), r.below(100), entry(MethodId(m)), to.signature(), to.name});
      }
      all.push_back(std::move(t));
    }
  }
  std::ranges::sort(all, {}, &jit::SiteTargets::site);
  return all;
}

// Returns random block counts: all equal, or arbitrary with many small ones and zeros.
inline std::vector<uint64_t> any_counts(const jit::Function& f, Random& r) {
  std::vector<uint64_t> counts(f.block_sites, 1000);
  if (r.chance(25)) return counts;
  bool far = r.chance(50);
  for (uint64_t& c : counts) c = far ? r.next() >> r.below(64) : r.below(3) * r.below(1000);
  return counts;
}

}  // namespace uptier::test
