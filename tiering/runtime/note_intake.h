// NoteIntake: takes the notes from the threads' rings, and acts on each according to its kind.
//
// A note has counts of a thread, or a request of its slow path. kHandlers in note_intake.cc is the
// table of the kinds.
//
//   Thread: the worker, or without one the thread that flushes; the caller holds the state mutex.
#pragma once

#include <cstdint>
#include <span>

#include "sampler/snapshot_ring.h"
#include "tiering/base/state_lock.h"

namespace uptier::tiering {

class AttachedThread;
struct Engine;
struct Method;

class NoteIntake {
 public:
  // `engine` outlives this.
  explicit NoteIntake(Engine& engine) : engine_(engine) {}

  // Takes all notes that are in the rings now. Requests newer code, and calls frames for
  // observation, if due. Returns whether there was a note.
  bool drain_locked() UPTIER_REQUIRES(state_lock);
  // The same of `most` notes of each thread.
  bool drain_some_locked(uint32_t most) UPTIER_REQUIRES(state_lock);
  // Takes at most `most` notes of one thread.
  void drain_thread_locked(AttachedThread& t, uint32_t most = UINT32_MAX)
      UPTIER_REQUIRES(state_lock);
  // Takes a thread's counts from the instrumented copy of optimized code.
  void take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                      std::span<const uint64_t> counts) UPTIER_REQUIRES(state_lock);
  // Asks the policy about a method, and queues the compilation that it decides on.
  void consider(Method& m, const sampler::Note& note) UPTIER_REQUIRES(state_lock);

 private:
  // The handling of notes of one kind.
  struct Handler {
    void (NoteIntake::*handle)(Method& m, AttachedThread& t, const sampler::Note& note,
                               std::span<const uint64_t> counts);
    bool activity;  // a note shows that threads run guest code
  };
  static const Handler kHandlers[];

  // Memory ran out while handling a note: its request may be made again.
  void forget_note(const sampler::Note& note) noexcept;
  // A trial is over: acts on the result.
  void end_trial(Method& m) UPTIER_REQUIRES(state_lock);
  // The method's first optimized version was slower than its baseline code: puts it back to
  // baseline code, which is made again at the next call. The policy remembers the time.
  void back_to_baseline(Method& m) UPTIER_REQUIRES(state_lock);

  void handle_note(AttachedThread& t, const sampler::Note& note, std::span<const uint64_t> counts);
  // The handlers, one for each kind of note.
  void take_counts(Method& m, AttachedThread& t, const sampler::Note& note,
                   std::span<const uint64_t> counts) UPTIER_REQUIRES(state_lock);
  void take_wish_for_copy(Method& m, AttachedThread& t, const sampler::Note& note,
                          std::span<const uint64_t> counts) UPTIER_REQUIRES(state_lock);
  void take_wish_for_newer(Method& m, AttachedThread& t, const sampler::Note& note,
                           std::span<const uint64_t> counts) UPTIER_REQUIRES(state_lock);
  void take_frame(Method& m, AttachedThread& t, const sampler::Note& note,
                  std::span<const uint64_t> counts) UPTIER_REQUIRES(state_lock);
  void take_copy_counts(Method& m, AttachedThread& t, const sampler::Note& note,
                        std::span<const uint64_t> counts) UPTIER_REQUIRES(state_lock);
  void take_trial(Method& m, AttachedThread& t, const sampler::Note& note,
                  std::span<const uint64_t> counts) UPTIER_REQUIRES(state_lock);
  void take_guard(Method& m, AttachedThread& t, const sampler::Note& note,
                  std::span<const uint64_t> counts) UPTIER_REQUIRES(state_lock);
  void take_trap(Method& m, AttachedThread& t, const sampler::Note& note,
                 std::span<const uint64_t> counts) UPTIER_REQUIRES(state_lock);
  // Takes the counts in a note. Returns whether the method is in service.
  bool learn(Method& m, AttachedThread& t, const sampler::Note& note,
             std::span<const uint64_t> counts) UPTIER_REQUIRES(state_lock);

  Engine& engine_;
};

}  // namespace uptier::tiering
