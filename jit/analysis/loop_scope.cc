#include "jit/analysis/loop_scope.h"

#include "jit/analysis/loop_forest.h"

namespace uptier::jit {

LoopScope scope_of(const Function& f, LoopId loop) {
  LoopForest forest = find_loop_forest(f);
  LoopScope scope{0, std::vector<bool>(f.site_count), std::vector<bool>(f.loop_count)};
  for (Block b : forest.loop(loop).blocks) {
    for (InstId id : f.block(b).insts) {
      const Inst& i = f.inst(id);
      SiteId site = i.op == Opcode::kProbe ? i.aux : i.site;
      if (site == 0) continue;
      scope.sites[site - 1] = true;
      if (b == forest.loop(loop).header && is_block_probe(i)) scope.header = site;
    }
  }
  for (uint32_t l = 0; l < f.loop_count; ++l) {
    LoopId outer = forest.loops[l].parent;
    while (outer.valid() && outer != loop) outer = forest.loop(outer).parent;
    scope.inner[l] = outer == loop;
  }
  return scope;
}

}  // namespace uptier::jit
