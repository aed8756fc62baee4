// TraceEmitter: writes the observed counts to the trace.
//
// Law: methods and streams are described before anything names them.
//
//   Thread: the caller holds the runtime's state mutex; so calls to the sink never overlap.
#pragma once

#include <cstdint>

#include "sampler/snapshot_ring.h"
#include "tiering/model/method.h"
#include "tiering/observe/estimates.h"
#include "tiering/observe/method_directory.h"
#include "uptier/options.h"
#include "uptier/trace.h"

namespace uptier::tiering {

// Returns why a note that flushes was taken.
FlushReason reason_of(sampler::NoteKind k);

class TraceEmitter {
 public:
  // All outlive this; `sink` may be null. `live`: the options as they are by now.
  TraceEmitter(const Options& options, const Options& live, const MethodDirectory& directory,
               const Estimates& estimates, TraceSink* sink)
      : options_(options), live_(live), directory_(directory), estimates_(estimates), sink_(sink) {}

  // Returns whether there is a trace.
  bool on() const { return sink_ != nullptr; }
  // Begins the trace; before the first event.
  void begin();
  // Ends it.
  void finish() noexcept;
  // Counts an event for which memory was refused.
  void note_lost_event() noexcept { ++events_lost_; }
  // Returns whether the sink took the event, or there is none.
  bool emit(const TraceEvent& e);
  // Returns the handle of a method, which the trace has been told of from then on.
  uint64_t announce(Method& m);
  // Tells what a thread has flushed of a method: `weight` executions stand behind each one that it
  // counted since the last time.
  void flush(Method& m, uint32_t thread, const sampler::Note& note, uint64_t weight);
  // Writes when a method was called first: its position among the first calls of all methods.
  void tell_first_call(Method& m, uint64_t position) {
    emit(FirstCallEvent{announce(m), position});
  }
  uint64_t events_lost() const { return events_lost_; }

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
