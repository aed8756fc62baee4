// guess_lengths: asks calls that copy or fill whether their length is what it was seen to be.
//
//     r = call_host copy(c, base, to, from, n) copies
//
//  ->     branch eq n, 16, short, long       short: r1 = ... the same call with 16 ...; jump rest(r1)
//     rest(r): ...                           long:  r2 = ... the call as it was ...; jump rest(r2)
//
// expand_bulk makes loads and stores of the first. A wrong guess costs a comparison and leaves
// nothing, so a guess may stand anywhere, and nobody has to take it back.
//
//   Thread: none of its own. Cost: linear, and in the number of guesses.
#pragma once

#include <span>

#include "jit/ir/function.h"
#include "jit/opt/inlinee.h"

namespace uptier::jit {

// `f` with its probes; a guess is one value of a probe of the host's that sees the length.
void guess_lengths(Function& f, std::span<const SiteValues> guesses);

}  // namespace uptier::jit
