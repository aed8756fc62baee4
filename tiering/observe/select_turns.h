// select_turns: what was seen of the conditions of selections, from a profile to the compiler.
//
//   Thread: Runtime's state mutex.
#pragma once

#include "jit/frontend/select_probes.h"
#include "tiering/model/method.h"
#include "tiering/observe/estimates.h"

namespace uptier::tiering {

// Returns what a profile says of a site of select_probes.h; no executions where it says nothing, or
// where the site has counted something else. Pure.
jit::SelectTurns turns_at(const MethodProfile& p, SiteId site);

// Writes into the selections of a method's body, as described, how this run has seen their
// conditions turn; where it has seen too little, how earlier ones have.
void note_turns(const Method& m, const Estimates& estimates, jit::Function& f);

}  // namespace uptier::tiering
