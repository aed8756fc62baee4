// select_to_branch: makes a selection a branch where its loop waits for the selection longer.
//
//     b: ... v = select c, x, y; rest          b: ... branch c, t, e
//                                       ->     t: jump j(x)    e: jump j(y)
//                                              j(v): rest
//
// A selection waits for its condition. A load through the selected address, or the next round, waits with
// it. Code after a predicted branch does not wait. By the counted turns of the condition (ir/turns.h),
//
//   n       executions
//   misses  misses_of(): a condition that rarely changes is predicted, and so is one that always does
//
// a selection becomes a branch if it is
//
//   predictable    misses * kRounds <= n
//   one of two     whatever its misses, and without counts: the rest of the block stores through the
//                  selected address, and its loop reads one of the two places (analysis/one_of_two.h).
//                  Both ways then do the rest, each with its own store, if it is at most kMostCopiedRest
//                  instructions long
//
// Later selections in the block on the same condition, of values known before it, become part of the
// same branch.
//
//   Thread: none of its own. Cost: one look at each instruction; near linear where something is split.
#pragma once

#include "jit/ir/function.h"

namespace uptier::jit {

void select_to_branch(Function& f);

}  // namespace uptier::jit
