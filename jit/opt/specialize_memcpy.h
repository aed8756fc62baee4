// specialize_memcpy: tests whether a call that copies or fills has the most frequently observed
// length.
//
//     r = call_host copy(c, base, to, from, n) copies
//
//  ->     branch eq n, 16, short, long       short: r1 = ... the same call with 16 ...; jump rest(r1)
//     rest(r): ...                           long:  r2 = ... the call as it was ...; jump rest(r2)
//
// expand_memcpy turns the first call into loads and stores. A wrong guess costs a comparison and
// does not leave the code, so a guess may be made anywhere, and never has to be undone.
//
//   Thread: none of its own. Cost: linear, and in the number of guesses.
#pragma once

#include <span>

#include "jit/ir/function.h"
#include "jit/opt/inlinee.h"

namespace uptier::jit {

// `f` with its probes. A guess is a single value for a host's probe of the length.
void specialize_memcpy(Function& f, std::span<const SiteValues> guesses);

}  // namespace uptier::jit
