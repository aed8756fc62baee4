// known_counts: what was seen of a body's counters, from a profile to the compiler.
//
//   Thread: Runtime's state mutex.
#pragma once

#include "jit/analysis/known_counts.h"
#include "tiering/model/method.h"
#include "tiering/observe/estimates.h"

namespace uptier::tiering {

// Returns what a profile says of the counters that a body asks for, in one of the `runs` (above 0) that
// it stands for. Pure.
std::vector<jit::KnownCount> counts_in(const MethodProfile& p, const jit::Function& f, double runs);

// Writes into a method's body, as described, what this run has seen its counters come to; where it
// has observed too little, what they come to in one of the earlier ones.
void note_counts(const Method& m, const Estimates& estimates, jit::Function& f);

// Writes numbers that mean nothing, since any are right, and others for another `salt`.
void note_wild_counts(jit::Function& f, uint64_t salt);

}  // namespace uptier::tiering
