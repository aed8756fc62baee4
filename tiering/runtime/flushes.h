// Flushes: hands over what threads have counted, other than on slow paths.
//
//   Thread: what ends in _locked with the state mutex; flush() any, without it.
#pragma once

#include "sampler/snapshot_ring.h"

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

  // Hands over the counts of every method that a thread has run. `kind`: why.
  void flush_thread_locked(AttachedThread& t, sampler::NoteKind kind);
  // Hands over what all threads have counted of a method that is taken out: none of them runs it any more.
  // Where they may (`after` is not kOver), the calling thread only; the others hand over what they
  // count when they flush.
  void flush_removed_locked(Method& m, HostUse after);
  // See Runtime::flush.
  void flush();

 private:
  // Hands over what the thread counted in the copy of optimized code.
  void flush_optimized_locked(Method& m, AttachedThread& t);
  void flush_and_wait();

  Engine& engine_;
  NoteIntake& note_intake_;
  Worker& worker_;
  Notes& notes_;
  OptimizedSamples& optimized_samples_;
};

}  // namespace uptier::tiering
