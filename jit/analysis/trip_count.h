// trip_count: how often a loop goes round, when constants say so.
//
// The loop is run on paper: what is known of its header's parameters at the entrance, and of all
// that is computed from it in blocks that every round passes, until one of them is known to leave.
// Other ways out may leave earlier.
#pragma once

#include <optional>

#include "jit/analysis/loops.h"

namespace uptier::jit {

// Returns in which round the loop is left at the latest; none when that is unknown, or more than
// `most`. Cost: the size of the loop, for each round.
std::optional<uint32_t> count_trips(const Function& f, const ControlFlow& c, const LoopNest& n,
                                    uint32_t loop, uint32_t most);

}  // namespace uptier::jit
