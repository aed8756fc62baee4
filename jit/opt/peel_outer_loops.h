// peel_outer_loops: keeps the loops of a body that is entered at an inner loop.
//
//     for a:                       entry -> b': rest of b, rest of a's round
//       for b:   <-- entered              -> for a: for b: ...        (the body as it was)
//
// If it were entered in its middle, the outer loop would be a cycle with two entrances, which is no
// natural loop: no pass would hoist out of it, and the register allocator would treat it as straight code
// that runs once. So the rest of its first round is copied, once for each loop around the one that is
// entered, and the loop itself is entered at its header.
//
// Rejected: entering at the outermost header only. That header may be reached once in a minute, and code
// cannot poll there and nowhere else.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jit/analysis/loop_forest.h"
#include "jit/ir/function.h"
#include "jit/opt/repair_ssa.h"

namespace uptier::jit {

// Returns the block to enter at: the header of `loop`, or its copy in what was peeled. `f` has the
// blocks of the function that `forest` is of; what the copies define goes to `again`, for
// repair_ssa. `counts`: executions by block site - 1, or empty; a copy gets the share of its site
// that one of the outer loop's rounds is. What would grow the function by more than 6,000
// instructions is not peeled, the outermost loops first.
Block peel_outer_loops(Function& f, const LoopForest& forest, LoopId loop,
                       std::span<const uint64_t> counts, std::vector<Redefinition>& again);

}  // namespace uptier::jit
