// repair_ssa: one definition each again, after some blocks have given values further ones.
//
// Uses that several definitions reach read a block parameter that joins them; parameters are made
// on demand, from the uses up (Braun et al., 2013), and prune_params removes the needless ones.
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
