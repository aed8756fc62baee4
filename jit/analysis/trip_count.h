// trip_count: the number of iterations of a loop, if constants determine it.
//
// The loop is evaluated symbolically: starting with the known parameters of its header at entry,
// all values computed from them in blocks that every iteration passes, until one of these blocks is
// known to leave. Other exits may leave earlier.
#pragma once

#include <optional>

#include "jit/analysis/loops.h"

namespace uptier::jit {

// Returns the iteration in which the loop is left at the latest; none if unknown, or more than
// `most`. Cost: the size of the loop, for each iteration.
std::optional<uint32_t> count_trips(const Function& f, const ControlFlow& c, const LoopNest& n,
                                    uint32_t loop, uint32_t most);

}  // namespace uptier::jit
