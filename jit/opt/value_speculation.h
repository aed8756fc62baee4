// value_speculation: compiles for the values that the host's probes have seen, with guards.
//
//     b0: d = load p; probe value d       b0: d = load p
//         jump b1(0)                          g = eq d, 10; guard g, value
//     b1(i): ... rem x, d ...      ->         jump b1(0)
//                                         b1(i): ... rem x, 10 ...
//
// A guess is one value, and the guard compares with it; or a range, and the guard tests it with one
// comparison, which value_range_propagation then uses. Baseline code can only continue at deopt
// targets (analysis/deopt_targets.h), so a guard is at the start of a block, or on the only edge
// into a loop. The pass takes the first such place after the definition of the value that dominates
// most of its dependent operations. Uses in the block of the definition itself are not specialized.
//
//   Thread: none of its own. Cost: near linear, for each guess.
#pragma once

#include <cstdint>
#include <span>

#include "jit/frontend/attach_deopts.h"
#include "jit/opt/inlinee.h"

namespace uptier::jit {

// Returns the number of guards placed. `f` as it was built, apart from the changes of
// attach_deopts. New blocks come last in its layout. `entered_at`: the loop at which the code is
// entered, or none; values that would have to be known before it are not guessed.
uint32_t value_speculation(Function& f, const DeoptContext& c, std::span<const SiteValues> guesses,
                           LoopId entered_at);

}  // namespace uptier::jit
