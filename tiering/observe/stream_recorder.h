// StreamRecorder: records the flushes of baseline code.
//
//   note + counters -> stream of (method, thread) -> window -> convergence
//
// Counters are cumulative, so a stream keeps the last snapshot and nothing is ever added twice.
//
// The streams of ended threads are merged into one, so that a runtime's data about a method does
// not grow with every thread that ever ran it:
//
//   stream of a thread --its estimates scaled to everything it ran--> kEndedStream
//
// Calls of threads without samples stay known (Stream::sampled); they are added to the estimates
// with the remaining streams. kEndedStream has sums only: no words and no window. In a trace each
// thread's stream stays separate; its final flush has ended it.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <span>

#include "sampler/convergence.h"
#include "sampler/snapshot_ring.h"
#include "tiering/base/state_lock.h"
#include "tiering/events/events.h"
#include "tiering/model/method.h"
#include "tiering/observe/estimates.h"
#include "tiering/observe/method_directory.h"
#include "tiering/observe/stream_sums.h"
#include "tiering/observe/trace_emitter.h"
#include "uptier/options.h"
#include "uptier/policy.h"

namespace uptier::tiering {

class StreamRecorder {
 public:
  // All outlive this. `live`: the options with later changes; `policy` is derived from them.
  StreamRecorder(const Options& options, const Options& live, const PolicyOptions& policy,
                 const sampler::Ladder& ladder, const MethodDirectory& directory,
                 const Estimates& estimates, TraceEmitter& trace, Events& events)
      : options_(options),
        live_(live),
        policy_(policy),
        ladder_(ladder),
        directory_(directory),
        estimates_(estimates),
        trace_(trace),
        events_(events) {}

  // Stores a snapshot and emits its events. Returns the verdict about the window that it ends.
  sampler::Verdict take(Method& m, uint32_t thread, const sampler::Note& note,
                        std::span<const uint64_t> counts) UPTIER_REQUIRES(state_lock);
  // Counts frames of a thread that a trap unwound.
  void take_trap(Method& m, uint32_t thread, SiteId block, uint64_t frames)
      UPTIER_REQUIRES(state_lock);
  // Merges the streams of a thread, which has made its last flush, into the stream of ended
  // threads.
  void end(Method& m, uint32_t thread) UPTIER_REQUIRES(state_lock);

  // Says whether a note has counts of its thread.
  static bool is_flush(sampler::NoteKind k) noexcept;

 private:
  // Returns how many executions each execution counted in the window of a note stands for, and ends
  // that window in the stream's coverage.
  uint64_t weight_of(const Method& m, const sampler::Note& note, const Totals& t,
                     Stream& counted) const UPTIER_REQUIRES(state_lock);
  // `settled`: no frame of the thread is inside, so counts may fall to their exact values.
  sampler::Verdict end_window(Method& m, uint32_t stream, uint64_t entries, uint64_t new_samples,
                              uint64_t weight, uint64_t nominal, bool settled)
      UPTIER_REQUIRES(state_lock);
  void end_one(Method& m, uint32_t stream) UPTIER_REQUIRES(state_lock);

  const Options& options_;
  const Options& live_;
  const PolicyOptions& policy_;
  const sampler::Ladder& ladder_;
  const MethodDirectory& directory_;
  const Estimates& estimates_;
  TraceEmitter& trace_;
  Events& events_;
};

}  // namespace uptier::tiering
