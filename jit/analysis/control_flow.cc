#include "jit/analysis/control_flow.h"

namespace uptier::jit {

ControlFlow analyze_control_flow(const Function& f) {
  ControlFlow c{compute_dominators(f), {}, Predecessors(f)};
  c.position.assign(f.blocks.size(), UINT32_MAX);
  for (uint32_t i = 0; i < c.order().size(); ++i) c.position[c.order()[i].index()] = i;
  return c;
}

}  // namespace uptier::jit
