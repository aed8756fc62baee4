// Observer: takes what threads have flushed, tells the trace, and asks the policy.
//
//   note + counters -> stream of (method, thread) -> events to the sink
//                   -> snapshot -> decide -> log
//
// Counters are cumulative, so a stream keeps the last snapshot and nothing is ever added twice.
//
//   Thread: the caller holds the runtime's state mutex; so calls to the sink never overlap.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sampler/snapshot_ring.h"
#include "tiering/method.h"
#include "tiering/opt_range.h"
#include "tiering/policy.h"
#include "uptier/options.h"
#include "uptier/profile.h"
#include "uptier/report.h"
#include "uptier/trace.h"

namespace uptier::tiering {

class Observer {
 public:
  Observer(const Options& options, TraceSink* sink);

  // Stores a snapshot and emits its events.
  void take(Method& m, uint32_t thread, const sampler::Note& note,
            std::span<const uint64_t> counts);
  // Asks the policy about a method after a note, and logs the answer.
  Decision ask(Method& m, const sampler::Note& note, const SystemSnapshot& system);

  // Returns the sum over the streams of a method.
  MethodProfile profile_of(const Method& m) const;
  // Returns estimated executions by block site - 1 (counts divided by the sampled share), empty
  // when there are fewer than min_samples samples.
  std::vector<uint64_t> block_estimates(const Method& m) const;

  // Ends the trace. `dropped`: events that could not be delivered.
  void finish();
  uint64_t sink_errors() const { return sink_errors_; }
  const std::vector<DecisionRecord>& decisions() const { return decisions_; }

 private:
  MethodSnapshot snapshot(const Method& m, const sampler::Note& note) const;
  void emit(const TraceEvent& e);
  void announce(Method& m);

  const Options& options_;
  PolicyOptions policy_;
  OptRange opt_range_;
  TraceSink* sink_;
  uint64_t sink_errors_ = 0;
  std::vector<DecisionRecord> decisions_;
};

}  // namespace uptier::tiering
