// place_target_probes: lets an instrumented copy of optimized code count the targets of indirect calls.
//
// A probe stands before each indirect call whose targets the plan counts: in the method's own body and,
// by a plan of its own, in each inlined body. It stays when the call is devirtualized and a body takes its
// place: a guess counts as its target.
#pragma once

#include "jit/ir/function.h"
#include "jit/probes/probe_plan.h"

namespace uptier::jit {

// `f` is one body: nothing has been inlined yet.
void place_target_probes(Function& f, const ProbePlan& plan);

}  // namespace uptier::jit
