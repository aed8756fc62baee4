// repair_ssa: restores SSA form after some values got additional definitions in other blocks.
//
// A use that several definitions reach reads a block parameter that joins them. Parameters are made on
// demand, from the uses up (Braun et al., 2013); remove_redundant_phis removes those that are not needed.
#pragma once

#include <span>

#include "jit/ir/function.h"

namespace uptier::jit {

// At the end of `block`, the value `again` replaces `value`, which the block does not use any more.
struct Redefinition {
  Value value;
  Block block;
  Value again;
};

// Every block in the layout must be reachable, and every path to a use must contain a definition. A
// value's own definition may be unreachable.
void repair_ssa(Function& f, std::span<const Redefinition> values);

}  // namespace uptier::jit
