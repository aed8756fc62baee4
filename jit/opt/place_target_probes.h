// place_target_probes: what an instrumented copy of optimized code counts of indirect calls.
//
// A probe stands in front of each indirect call whose targets the plan counts, of the method's own
// body and, by a plan of its own, of each that is inlined. It stays there when the call is guessed
// and a body takes its place: a guess counts as its target.
#pragma once

#include "jit/ir/function.h"
#include "jit/probes/probe_plan.h"

namespace uptier::jit {

// `f` is one body: nothing has been inlined yet.
void place_target_probes(Function& f, const ProbePlan& plan);

}  // namespace uptier::jit
