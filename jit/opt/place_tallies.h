// place_tallies: lets optimized code count its entries and the rounds of its loops.
//
//   entries             one addition at the start, unless the stub counts them
//   a loop with a loop
//   or a call in it     one addition a round, at the header
//   any other loop      one addition at each exit, of all rounds: from a variable that grows by a
//                       constant if the loop has one, else from a new one
//
// If rounds with a call are too short for that, as an interpreter's, a rarer block of the loop is
// counted, and the other blocks run as often for each time as the profile says. If no block is rare
// enough, the loop is not counted: its blocks run as often, for one round of the loop around it, as
// the profile says.
//
// A frame that leaves a loop by a trap, or through a guard, takes the rounds of an innermost loop
// with it uncounted.
//
// Runs after all passes that change code, before the blocks are laid out.
#pragma once

#include "jit/analysis/frequencies.h"
#include "jit/code/tally_table.h"
#include "jit/ir/function.h"

namespace uptier::jit {

// Returns the words and the blocks that they count; empty if the source refuses words. May add
// blocks, which makes the analyses stale.
TallyTable place_tallies(Function& f, const LoopNest& loops, const Frequencies& q,
                         const TallyRequest& r);

}  // namespace uptier::jit
