// NoteIntake: takes the notes that threads have put into their rings, and acts on each by its kind.
//
// A note says what a thread has counted, or what its slow path wants. kHandlers in note_intake.cc is
// the table of the kinds.
//
//   Thread: the worker, or without one the thread that flushes; the caller holds the state mutex.
#pragma once

#include <cstdint>
#include <span>

#include "sampler/snapshot_ring.h"

namespace uptier::tiering {

class AttachedThread;
struct Engine;
struct Method;

class NoteIntake {
 public:
  // `engine` outlives this.
  explicit NoteIntake(Engine& engine) : engine_(engine) {}

  // Takes what is in the rings of all threads now, and asks for newer code and observed frames that
  // are due. Returns whether there was a note.
  bool drain_locked();
  // The same of `most` notes of each thread.
  bool drain_some_locked(uint32_t most);
  // Takes at most `most` notes of one thread.
  void drain_thread_locked(AttachedThread& t, uint32_t most = UINT32_MAX);
  // Takes what a thread counted in the instrumented copy of optimized code.
  void take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                      std::span<const uint64_t> counts);
  // Asks the policy about a method, and queues what it wants.
  void consider(Method& m, const sampler::Note& note);

 private:
  // What is done with the notes of one kind.
  struct Handler {
    void (NoteIntake::*handle)(Method& m, AttachedThread& t, const sampler::Note& note,
                               std::span<const uint64_t> counts);
    bool activity;  // it shows that threads run guest code
  };
  static const Handler kHandlers[];

  // Memory was refused to what a note is about: it may be asked for again.
  void forget_note(const sampler::Note& note) noexcept;
  // A trial is over: does what follows for the method's versions.
  void end_trial(Method& m);
  // The method's first optimized version was slower than its baseline code: it goes back to what it
  // had before, which is made again at the next call. The policy remembers when.
  void back_to_baseline(Method& m);

  void handle_note(AttachedThread& t, const sampler::Note& note, std::span<const uint64_t> counts);
  // The handlers.
  void take_counts(Method& m, AttachedThread& t, const sampler::Note& note,
                   std::span<const uint64_t> counts);
  void take_wish_for_copy(Method& m, AttachedThread& t, const sampler::Note& note,
                          std::span<const uint64_t> counts);
  void take_wish_for_newer(Method& m, AttachedThread& t, const sampler::Note& note,
                           std::span<const uint64_t> counts);
  void take_frame(Method& m, AttachedThread& t, const sampler::Note& note,
                  std::span<const uint64_t> counts);
  void take_copy_counts(Method& m, AttachedThread& t, const sampler::Note& note,
                        std::span<const uint64_t> counts);
  void take_trial(Method& m, AttachedThread& t, const sampler::Note& note,
                  std::span<const uint64_t> counts);
  void take_guard(Method& m, AttachedThread& t, const sampler::Note& note,
                  std::span<const uint64_t> counts);
  void take_trap(Method& m, AttachedThread& t, const sampler::Note& note,
                 std::span<const uint64_t> counts);
  // Takes the counts that come with a note. Returns whether the method is in service.
  bool learn(Method& m, AttachedThread& t, const sampler::Note& note,
             std::span<const uint64_t> counts);

  Engine& engine_;
};

}  // namespace uptier::tiering
