// specialize_memcpy: tests whether a call that copies or fills has the length that was seen most often.
//
//     r = call_host copy(c, base, to, from, n) copies
//
//  ->     branch eq n, 16, short, long       short: r1 = ... the same call with 16 ...; jump rest(r1)
//     rest(r): ...                           long:  r2 = ... the call as it was ...; jump rest(r2)
//
// expand_memcpy makes loads and stores of the first. A wrong guess costs a comparison and leaves no code,
// so a guess may stand anywhere, and never has to be taken back.
//
//   Thread: none of its own. Cost: linear, and in the number of guesses.
#pragma once

#include <span>

#include "jit/ir/function.h"
#include "jit/opt/inlinee.h"

namespace uptier::jit {

// `f` with its probes; a guess is one value of a probe of the host's that sees the length.
void specialize_memcpy(Function& f, std::span<const SiteValues> guesses);

}  // namespace uptier::jit
