// BaselineRequest: which copy of a method the baseline compiler is to make.
#pragma once

#include "jit/probes/probe_plan.h"

namespace uptier::jit {

struct BaselineRequest {
  Copy copy = Copy::kPlain;
  // Whether the plain copy checks at loop headers. Off only when nothing may ever divert it.
  bool loop_checks = true;
  // What the instrumented copy counts, by plan_probes for this very body; null: one 64-bit counter
  // of the thread's own a block, block k at 8 * (k - 1). Plain copies do not depend on it.
  const ProbePlan* probes = nullptr;
  // Makes a plain copy that can be entered at every point (see analysis/deopt_targets.h): the places are
  // in CodeTables::entries. Its body is that of the other plain copies.
  bool enterable = false;
  // Guards leave for the host's interpreter instead of trapping.
  bool to_host = false;
  // Those that hold ask the runtime whether to leave all the same. For tests; with to_host.
  bool ask_to_leave = false;
};

}  // namespace uptier::jit
