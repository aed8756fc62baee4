// place_target_probes: what an instrumented copy of optimized code counts of indirect calls.
//
// A probe stands in front of each indirect call of the method's own whose targets the plan counts. It
// stays there when the call is guessed and a body takes its place: a guess counts as its target.
#pragma once

#include "jit/ir/function.h"
#include "jit/probe_plan.h"

namespace uptier::jit {

void place_target_probes(Function& f, const ProbePlan& plan);

}  // namespace uptier::jit
