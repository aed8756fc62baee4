// repair_ssa: restores SSA form after some blocks have got further definitions of a value.
//
// A use that several definitions reach reads a block parameter that joins them. Parameters are made on
// demand, from the uses up (Braun et al., 2013); remove_redundant_phis removes those that are not needed.
#pragma once

#include <span>

#include "jit/ir/function.h"

namespace uptier::jit {

// At the end of `block`, which uses `value` no more, it is `again`.
struct Redefinition {
  Value value;
  Block block;
  Value again;
};

// Every block in the layout is reachable, and on every way to a use lies a definition. A value's
// own definition may be unreachable.
void repair_ssa(Function& f, std::span<const Redefinition> values);

}  // namespace uptier::jit
