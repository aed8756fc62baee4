// repair_ssa: one definition each again, after the entry has given values a second one.
//
// Uses that both definitions reach read a block parameter that joins them; parameters are made on
// demand, from the uses up (Braun et al., 2013), and prune_params removes the needless ones.
#pragma once

#include <span>

#include "jit/ir/function.h"

namespace uptier::jit {

// A value that is also defined, as `at_entry`, in the entry block.
struct SecondDefinition {
  Value value;
  Value at_entry;
};

// The entry has no predecessor; every block in the layout is reachable. A value's own definition
// may be unreachable.
void repair_ssa(Function& f, std::span<const SecondDefinition> values);

}  // namespace uptier::jit
