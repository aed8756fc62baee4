// known_counts: passes the observed values of a body's counters from a profile to the compiler.
//
//   Thread: Runtime's state mutex.
#pragma once

#include "jit/analysis/known_counts.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/observe/estimates.h"

namespace uptier::tiering {

// Returns the values of the counters that a body asks for, for one of the `runs` (above 0) that the
// profile stands for. Pure.
std::vector<jit::KnownCount> counts_in(const MethodProfile& p, const jit::Function& f, double runs)
    UPTIER_REQUIRES(state_lock);

// Writes into a method's body, as described, the counts of this run; if the run has observed too
// little, those of an average earlier run.
void note_counts(const Method& m, const Estimates& estimates, jit::Function& f)
    UPTIER_REQUIRES(state_lock);

// Writes arbitrary numbers, since any are correct; they depend on `salt`.
void note_wild_counts(jit::Function& f, uint64_t salt);

}  // namespace uptier::tiering
