// poll_loops: chooses the loop headers at which optimized code polls whether it is to leave.
//
// A poll costs a comparison with memory and a jump that is not taken. It keeps alive the values that the
// frame would take along. So only loops poll whose rounds are long enough to hide that:
//
//   instructions + kCallWork * calls of a mean round  >=  kLongRound
//
// by the known frequencies. Loops with neither calls nor loops in them never poll: a frame in one has
// nothing to gain from newer callees, and reaches the header of a loop around it.
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
