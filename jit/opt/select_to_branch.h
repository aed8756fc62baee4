// split_selects: a selection becomes a branch where its loop waits for it longer than for a branch.
//
//     b: ... v = select c, x, y; rest          b: ... branch c, t, e
//                                       ->     t: jump j(x)    e: jump j(y)
//                                              j(v): rest
//
// A selection waits for its condition, and what is loaded from where it says, or computed in the
// next round, waits with it; behind a branch that is predicted nothing does. With what was counted
// of the condition (ir/select_probes.h)
//
//   n       executions
//   misses  misses_of(): what stays the same for long is predicted, and what changes every time
//
// a selection becomes a branch
//
//   predictable    when misses * kRounds <= n
//   one of two     whatever its misses, and without counts: the rest of the block stores where it
//                  says, and its loop reads one of the places (one_of_two.h). The rest is done in
//                  both ways then, with a store each, if it is at most kMostCopied instructions long
//
// What asks the same behind it in the block, of what is known before it, goes with it.
//
//   Thread: none of its own. Cost: one look at each instruction; near linear where something is split.
#pragma once

#include "jit/ir/function.h"

namespace uptier::jit {

void split_selects(Function& f);

}  // namespace uptier::jit
