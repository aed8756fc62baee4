// ObservedRounds: frames that stay in optimized code are observed from time to time, for some
// iterations of a loop.
//
//   plain code      the poll word of a loop header says kObserve: the worker is notified, and if there
//                   is an instrumented copy of the loop, and plain code to return to, the frame moves
//   instrumented    polls in each iteration of that loop. After kBurstRounds iterations, or kBurstNs:
//                   back to plain code, by the same kind of move. A longer burst is reported again
//
// A frame that leaves its loop, or is dropped by a trap, ends a burst without a report.
//
// A sample is an iteration, from the header to the next arrival there. Inner loops do not poll. A
// frame that leaves the loop for another one returns to plain code from there; if that loop has no
// code of its own, it is requested (osr_exit.h).
//
//   Thread: the guest's own, below guest frames. guest.h has the law.
#pragma once

#include <cstdint>

#include "jit/code/leave.h"
#include "jit/code/poll_words.h"

namespace uptier::tiering {

class AttachedThread;
struct Engine;
class FrameMoves;
class GuestWaits;
struct Method;
class OptimizedSamples;

class ObservedRounds {
 public:
  // All outlive this.
  ObservedRounds(Engine& engine, GuestWaits& guest_waits, OptimizedSamples& optimized_samples,
                 FrameMoves& frame_moves)
      : engine_(engine),
        guest_waits_(guest_waits),
        optimized_samples_(optimized_samples),
        frame_moves_(frame_moves) {}

  // Handles a poll in plain code whose word said kObserve and was cleared. The worker sets the word
  // again some time after it was notified.
  jit::Leave observe_frame(Method& m, jit::LeaveState& s, const jit::Code& from,
                           const jit::ExitRow& row) noexcept;
  // Handles a poll at the header of the loop in its copy; the word was cleared.
  jit::Leave observed_round(Method& m, jit::LeaveState& s, const jit::Code& from,
                            const jit::ExitRow& row) noexcept;
  // At a point that stress forces, every third frame goes to a copy, which is made on the spot.
  bool stress_observe(Method& m, jit::LeaveState& s, const jit::Code& from,
                      const jit::ExitRow& row) noexcept;

 private:
  // Says whether the frame stays in the copy: not if its thread counts for another copy now, or if
  // the copy is not in service.
  bool burst_goes_on(const Method& m, AttachedThread& t, const jit::Code& from) const noexcept;
  // `word`: the word that the frame polls next. Without room in the ring, it polls again.
  void tell_observed(Method& m, AttachedThread& t, uint32_t loop, jit::PollWord& word,
                     uint64_t burst_ns) noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
  OptimizedSamples& optimized_samples_;
  FrameMoves& frame_moves_;
};

}  // namespace uptier::tiering
