// select_turns: passes the observed outcomes of select conditions from a profile to the compiler.
//
//   Thread: Runtime's state mutex.
#pragma once

#include "jit/frontend/select_probes.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/observe/estimates.h"

namespace uptier::tiering {

// Returns the data of a profile about a site of select_probes.h; no executions if there is none, or
// if the site has counted something else. Pure.
jit::SelectTurns turns_at(const MethodProfile& p, SiteId site) UPTIER_REQUIRES(state_lock);

// Writes into the selects of a method's body, as described, the outcomes of their conditions in
// this run; if it has observed too little, those of earlier runs.
void note_turns(const Method& m, const Estimates& estimates, jit::Function& f)
    UPTIER_REQUIRES(state_lock);

}  // namespace uptier::tiering
