// select_to_branch: turns a selection into a branch if its loop waits for the selection longer than
// for the branch.
//
//     b: ... v = select c, x, y; rest          b: ... branch c, t, e
//                                       ->     t: jump j(x)    e: jump j(y)
//                                              j(v): rest
//
// A selection waits for its condition. A load through the selected address, or the next iteration,
// waits with it. Code after a predicted branch does not wait. By the counted outcomes of the
// condition (ir/turns.h),
//
//   n       executions
//   misses  misses_of(): low for a condition that rarely changes, and for one that always does
//
// a selection becomes a branch if it is
//
//   predictable    misses * kRounds <= n
//   one of two     whatever its misses, and without counts: the rest of the block stores through the
//                  selected address, and its loop reads one of the two places (analysis/one_of_two.h).
//                  If the rest is at most kMostCopiedRest instructions long, both arms get a copy of it,
//                  each with its own store
//
// Later selections in the block on the same condition, between values known before the branch,
// become part of it.
//
//   Thread: none of its own. Cost: one look at each instruction; near linear if something is split.
#pragma once

#include "jit/ir/function.h"

namespace uptier::jit {

void select_to_branch(Function& f);

}  // namespace uptier::jit
