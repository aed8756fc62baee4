// Flushes: flushes the counts of threads, outside of slow paths.
//
//   Thread: functions with _locked: with the state mutex; flush(): any, without it.
#pragma once

#include "sampler/snapshot_ring.h"
#include "tiering/base/state_lock.h"

namespace uptier::tiering {

class AttachedThread;
struct Engine;
struct Method;
class NoteIntake;
class Notes;
class OptimizedSamples;
class Worker;

enum class HostUse : uint8_t;

class Flushes {
 public:
  // All outlive this.
  Flushes(Engine& engine, NoteIntake& note_intake, Worker& worker, Notes& notes,
          OptimizedSamples& optimized_samples)
      : engine_(engine),
        note_intake_(note_intake),
        worker_(worker),
        notes_(notes),
        optimized_samples_(optimized_samples) {}

  // Flushes the counts of every method that a thread has run. `kind`: the reason.
  void flush_thread_locked(AttachedThread& t, sampler::NoteKind kind) UPTIER_REQUIRES(state_lock);
  // Flushes the counts of all threads for a method that is removed, because none of them runs it
  // any more. If they still may (`after` is not kOver), flushes the calling thread only; the others
  // flush their counts later.
  void flush_removed_locked(Method& m, HostUse after) UPTIER_REQUIRES(state_lock);
  // See Runtime::flush.
  void flush();

 private:
  // Flushes the counts of the thread in the copy of optimized code.
  void flush_optimized_locked(Method& m, AttachedThread& t) UPTIER_REQUIRES(state_lock);
  void flush_and_wait();

  Engine& engine_;
  NoteIntake& note_intake_;
  Worker& worker_;
  Notes& notes_;
  OptimizedSamples& optimized_samples_;
};

}  // namespace uptier::tiering
