// place_target_probes: makes an instrumented copy of optimized code count the targets of indirect
// calls.
//
// Adds a probe before each indirect call whose targets the plan counts: in the method's own body
// and, by separate plans, in each inlined body. The probe stays when the call is devirtualized and
// a body replaces it, so executions of the guessed target count as well.
#pragma once

#include "jit/ir/function.h"
#include "jit/probes/probe_plan.h"

namespace uptier::jit {

// `f` is one body: nothing has been inlined yet.
void place_target_probes(Function& f, const ProbePlan& plan);

}  // namespace uptier::jit
