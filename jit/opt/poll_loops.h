// poll_loops: at which loop headers optimized code asks whether it is to leave.
//
// Asking takes a comparison with memory and a jump that is not taken, and keeps alive what the
// frame would take along. So a loop asks whose rounds are long enough for that to be noise:
//
//   instructions + kCallWork * calls of a mean round  >=  kLongRound
//
// by what is known of its frequencies. Loops with neither calls nor loops in them never do: a frame
// in one has nothing to gain from newer callees, and comes to the header of a loop around it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

// Returns the loops that ask, ascending. `f` as it was built; `counts`: executions by block site -
// 1, or empty. `all`: those with short rounds, too, for tests.
std::vector<LoopId> loops_that_poll(const Function& f, std::span<const uint64_t> counts, bool all);

}  // namespace uptier::jit
