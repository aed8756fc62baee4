// The loops of a method as a report knows them: how they nest, and where they come from.
#pragma once

#include <vector>

#include "jit/ir/function.h"
#include "jit/probes/probe_plan.h"
#include "tiering/model/method.h"

namespace uptier::tiering {

// Returns the loops that a plan times, by rising id, the function's body last. `f` is as it was
// built; O(1) when the plan times none.
std::vector<TimedLoop> timed_loops(const jit::Function& f, const jit::ProbePlan& plan);

// Settles the cycles in a profile of a method (profile/data/loop_nest.h), so that what leaves the process
// says what Runtime::loops() does. `off`: by how many cycles one execution may be off.
void settle_loops(const Method& m, double off, MethodProfile& p);

}  // namespace uptier::tiering
