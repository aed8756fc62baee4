// guess_values: takes the values that probes of the host see to be what they were seen to be.
//
//     b0: d = load p; probe value d       b0: d = load p
//         jump b1(0)                          g = eq d, 10; guard g, value
//     b1(i): ... rem x, d ...      ->         jump b1(0)
//                                         b1(i): ... rem x, 10 ...
//
// A guess is one value, and a guard compares with it; or a range, and a guard asks with one
// comparison whether the value lies there: settle_ranges knows what follows. A guard stands at the
// start of a block, or on the one way into a loop, which are places that baseline code can go on
// from (ir/deopt_points.h); it is the first such place behind the value's definition that lies
// above most of what the value steers. What the definition's own block does with the value keeps
// asking.
//
//   Thread: none of its own. Cost: near linear, for each guess.
#pragma once

#include <cstdint>
#include <span>

#include "jit/frontend/attach_deopts.h"
#include "jit/opt/inlinee.h"

namespace uptier::jit {

// Returns how many guards were placed. `f` as it was built, but for what attach_deopts did; blocks
// that are added come last in its layout. `entered_at`: the loop at which the code is entered, or
// none; what would have to be known before that is not guessed.
uint32_t guess_values(Function& f, const DeoptContext& c, std::span<const SiteValues> guesses,
                      LoopId entered_at);

}  // namespace uptier::jit
