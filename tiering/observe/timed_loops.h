// The loops of a method for reports: their nesting, and their locations.
#pragma once

#include <vector>

#include "jit/ir/function.h"
#include "jit/probes/probe_plan.h"
#include "tiering/model/method.h"

namespace uptier::tiering {

// Returns the loops that a plan times, in ascending order of id, the function's body last. `f` is
// as it was built; O(1) if the plan times none.
std::vector<TimedLoop> timed_loops(const jit::Function& f, const jit::ProbePlan& plan);

// Settles the cycles in a profile of a method (profile/data/loop_nest.h), so that the saved profile
// agrees with Runtime::loops(). `off`: the error of one execution, in cycles.
void settle_loops(const Method& m, double off, MethodProfile& p);

}  // namespace uptier::tiering
