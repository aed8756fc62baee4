// ControlFlow: the order of a function's blocks and how they reach each other; computed once and
// shared by the passes that do not change it.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/analysis/dominators.h"
#include "jit/ir/function.h"

namespace uptier::jit {

struct ControlFlow {
  Dominators dominators;
  std::vector<uint32_t> position;  // by Block::index(): place in dominators.order, or UINT32_MAX
  Predecessors preds;

  const std::vector<Block>& order() const { return dominators.order; }
  bool dominates(Block a, Block b) const { return dominators.dominates(a, b); }
  // Returns the immediate dominator; none for the entry.
  Block idom(Block b) const { return dominators.idom[b.index()]; }
};

// Every block in the layout must be reachable.
ControlFlow analyze_control_flow(const Function& f);

}  // namespace uptier::jit
