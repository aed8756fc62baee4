// ObservedRounds: frames that stay in optimized code are observed by turns, for some rounds of a loop.
//
//   plain code      the poll word of a loop header says kObserve: the worker is told, and if there is an
//                   instrumented copy of the loop, and plain code to come back to, the frame goes
//   instrumented    each round of that loop asks. kBurstRounds later, or kBurstNs: back to plain
//                   code, by the same kind of move. What took longer is told again
//
// A frame that leaves its loop, or is dropped by a trap, ends a burst without a word.
//
// A sample is a round, from its header to the next arrival there. Inside of it loops do not ask. A
// frame that leaves the loop for another one goes back from there; if that has no code of its own to
// enter, it is asked for (osr_exit.h).
//
//   Thread: the guest's own, below guest frames. The law is in guest.h.
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

  // A poll word that said kObserve was cleared, in plain code. The worker sets it again some time after it
  // was told.
  jit::Leave observe_frame(Method& m, jit::LeaveState& s, const jit::Code& from,
                           const jit::ExitRow& row) noexcept;
  // A frame is at the header of a loop in the copy, whose word was cleared.
  jit::Leave observed_round(Method& m, jit::LeaveState& s, const jit::Code& from,
                            const jit::ExitRow& row) noexcept;
  // At a point that the stress plan forces, every third frame goes to a copy, which is made on the spot.
  bool stress_observe(Method& m, jit::LeaveState& s, const jit::Code& from,
                      const jit::ExitRow& row) noexcept;

 private:
  // Whether the frame is to stay in the copy. Not where its thread counts for another one by now, or the
  // copy is not in service.
  bool burst_goes_on(const Method& m, AttachedThread& t, const jit::Code& from) const noexcept;
  // `word`: what the frame finds next. Without room in the ring it asks again.
  void tell_observed(Method& m, AttachedThread& t, uint32_t loop, jit::PollWord& word,
                     uint64_t burst_ns) noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
  OptimizedSamples& optimized_samples_;
  FrameMoves& frame_moves_;
};

}  // namespace uptier::tiering
