// poll_loops: chooses the loop headers at which optimized code polls whether to leave.
//
// A poll costs a comparison with memory and a jump that is not taken. It keeps alive the values
// that the frame would take along. So only loops poll whose iterations are long enough to hide
// that:
//
//   instructions + kCallWork * calls of an average iteration  >=  kLongRound
//
// by the known frequencies. Loops with neither calls nor inner loops never poll: a frame in one has
// nothing to gain from newer callees, and reaches the header of a loop around it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

// Returns the loops that poll, ascending. `f` as it was built; `counts`: executions by block site -
// 1, or empty. `all`: includes loops with short iterations, for tests.
std::vector<LoopId> loops_that_poll(const Function& f, std::span<const uint64_t> counts, bool all);

}  // namespace uptier::jit
