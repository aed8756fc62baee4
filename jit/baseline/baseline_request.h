// BaselineRequest: tells the baseline compiler which copy of a method to make.
#pragma once

#include "jit/probes/probe_plan.h"

namespace uptier::jit {

struct BaselineRequest {
  Copy copy = Copy::kPlain;
  // Makes the plain copy check at loop headers. Off only if nothing may ever divert it.
  bool loop_checks = true;
  // The counters of the instrumented copy, from plan_probes for this very body; null: one 64-bit
  // counter of the thread's own for each block, block k at 8 * (k - 1). Plain copies ignore it.
  const ProbePlan* probes = nullptr;
  // Makes a plain copy that can be entered at every point (see analysis/deopt_targets.h): their
  // offsets are in CodeTables::entries. Its body is the same as in other plain copies.
  bool enterable = false;
  // Guards exit to the host's interpreter instead of trapping.
  bool to_host = false;
  // Guards that hold ask the runtime whether to exit all the same. For tests; with to_host.
  bool ask_to_leave = false;
};

}  // namespace uptier::jit
