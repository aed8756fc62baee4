// Observer: records the counts of methods, and answers questions about them.
//
//   note + counters -> streams, by the recorders -> events of the trace
//                      streams -> estimates -> advisor -> policy -> decisions
//
// Each part is a class of its own; the Observer connects them.
//
//   Thread: the caller holds the runtime's state mutex, unless a part says otherwise.
#pragma once

#include "tiering/observe/decision_log.h"
#include "tiering/observe/estimates.h"
#include "tiering/observe/inlined_recorder.h"
#include "tiering/observe/method_directory.h"
#include "tiering/observe/optimized_recorder.h"
#include "tiering/observe/policy_advisor.h"
#include "tiering/observe/settled.h"
#include "tiering/observe/stream_recorder.h"
#include "tiering/observe/tallied.h"
#include "tiering/observe/trace_emitter.h"
#include "uptier/options.h"
#include "uptier/policy.h"

namespace uptier::tiering {

class Observer {
  PolicyOptions policy_;  // before the parts, which read it

 public:
  // All outlive this; `sink` and `hosts_policy` may be null. `live`: the options with later
  // changes.
  Observer(const Options& options, const Options& live, const sampler::Ladder& ladder,
           TraceSink* sink, Policy* hosts_policy, Events& events, TallyWords& words)
      : policy_(PolicyOptions::from(options)),
        tallied(words),
        decisions(events, options.decisions_kept),
        estimates(options, live, policy_, directory),
        settled(live, estimates, tallied, directory),
        trace(options, live, directory, estimates, sink),
        streams(options, live, policy_, ladder, directory, estimates, trace, events),
        optimized(live, ladder, directory, tallied, trace),
        inlined(directory, trace),
        advisor(options, live, policy_, hosts_policy, estimates, decisions) {}
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  // Decisions use these options from here on.
  void set_policy_options(const PolicyOptions& o) { policy_ = o; }

  Tallied tallied;
  MethodDirectory directory;
  DecisionLog decisions;
  Estimates estimates;
  Settled settled;
  TraceEmitter trace;
  StreamRecorder streams;
  OptimizedRecorder optimized;
  InlinedRecorder inlined;
  PolicyAdvisor advisor;
};

}  // namespace uptier::tiering
