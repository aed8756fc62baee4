// peel_outer_loops: keeps the loops of a body that is entered at an inner loop.
//
//     for a:                       entry -> b': rest of b, rest of a's iteration
//       for b:   <-- entered              -> for a: for b: ...        (the body as it was)
//
// Entering the outer loop in its middle would make it a cycle with two entries, which is not a
// natural loop: no pass would hoist out of it, and the register allocator would treat it as
// straight code that runs once. So the rest of its first iteration is copied, once for each loop
// around the entered one, and the loop itself is entered at its header.
//
// Rejected: entering at the outermost header only. That header may be reached once in a minute, and
// code cannot poll only there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jit/analysis/loop_forest.h"
#include "jit/ir/function.h"
#include "jit/opt/repair_ssa.h"

namespace uptier::jit {

// Returns the block to enter at: the header of `loop`, or its copy in a peeled part. `f` has the
// blocks of the function that `forest` describes. Adds the definitions in the copies to `again`,
// for repair_ssa. `counts`: executions by block site - 1, or empty; a copy gets the share of its
// site that one iteration of the outer loop makes up. At most 6,000 instructions are added;
// outermost loops beyond that are not peeled.
Block peel_outer_loops(Function& f, const LoopForest& forest, LoopId loop,
                       std::span<const uint64_t> counts, std::vector<Redefinition>& again);

}  // namespace uptier::jit
