// TraceEmitter: writes the observed counts to the trace.
//
// Law: methods and streams are described before other events refer to them.
//
//   Thread: the caller holds the runtime's state mutex, so calls to the sink never overlap.
#pragma once

#include <cstdint>

#include "sampler/snapshot_ring.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/observe/estimates.h"
#include "tiering/observe/method_directory.h"
#include "uptier/options.h"
#include "uptier/trace.h"

namespace uptier::tiering {

// Returns the reason of a flush note.
FlushReason reason_of(sampler::NoteKind k) UPTIER_REQUIRES(state_lock);

class TraceEmitter {
 public:
  // All outlive this; `sink` may be null. `live`: the options with later changes.
  TraceEmitter(const Options& options, const Options& live, const MethodDirectory& directory,
               const Estimates& estimates, TraceSink* sink)
      : options_(options), live_(live), directory_(directory), estimates_(estimates), sink_(sink) {}

  // Says whether there is a trace.
  bool on() const UPTIER_REQUIRES(state_lock) { return sink_ != nullptr; }
  // Begins the trace; call it before the first event.
  void begin() UPTIER_REQUIRES(state_lock);
  // Ends the trace.
  void finish() noexcept UPTIER_REQUIRES(state_lock);
  // Counts an event that was lost for lack of memory.
  void note_lost_event() noexcept UPTIER_REQUIRES(state_lock) { ++events_lost_; }
  // Returns whether the sink took the event, or there is no sink.
  bool emit(const TraceEvent& e) UPTIER_REQUIRES(state_lock);
  // Returns the handle of a method; describes the method in the trace if necessary.
  uint64_t announce(Method& m) UPTIER_REQUIRES(state_lock);
  // Writes a thread's flush of a method: each execution that it counted since the last flush stands
  // for `weight` executions.
  void flush(Method& m, uint32_t thread, const sampler::Note& note, uint64_t weight)
      UPTIER_REQUIRES(state_lock);
  // Writes the position of a method's first call among the first calls of all methods.
  void tell_first_call(Method& m, uint64_t position) UPTIER_REQUIRES(state_lock) {
    emit(FirstCallEvent{announce(m), position});
  }
  uint64_t events_lost() const UPTIER_REQUIRES(state_lock) { return events_lost_; }

 private:
  const Options& options_;
  const Options& live_;
  const MethodDirectory& directory_;
  const Estimates& estimates_;
  TraceSink* sink_;
  bool begun_ = false;
  uint64_t events_lost_ = 0;
};

}  // namespace uptier::tiering
