// optimize: runs the passes, in order, for one compilation.
#pragma once

#include <cstdint>
#include <span>

#include "jit/analysis/frequencies.h"
#include "jit/code/tally_table.h"
#include "jit/ir/function.h"
#include "jit/opt/compile_limit.h"
#include "jit/opt/inline_calls.h"
#include "jit/opt/pass_observer.h"
#include "jit/probes/probe_plan.h"

namespace uptier::jit {

struct Optimized {
  LoopNest loops;
  Frequencies frequencies;
  TallyTable tallies;     // empty unless a source of words was given
  bool given_up = false;  // the limit ended it: the other fields are not valid
  // The counts it was optimized for, inlined bodies included; empty without a profile.
  BlockCounts counts;
};

// Optimizes `f` and lays out its blocks. `observer` may be null. In an instrumented copy all blocks
// that run keep their probes, and `observed` selects the indirect calls whose targets are counted
// and the other probes whose values are recorded; null: none. It is null in plain code. `limit` may
// be null.
Optimized optimize(Function& f, const InlineRequest& r, PassObserver* observer = nullptr,
                   Copy copy = Copy::kPlain, const ProbePlan* observed = nullptr,
                   CompileLimit* limit = nullptr, TallyRequest tallies = {});

}  // namespace uptier::jit
