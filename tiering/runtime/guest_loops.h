// GuestLoops: what compiled code does when the check at a loop header asks: it goes on where it is, in the
// other copy of the body, or in optimized code of the loop (on-stack replacement).
//
//   Thread: the guest's own, below guest frames. The law is in guest.h.
#pragma once

#include <cstdint>

namespace uptier::tiering {

class AttachedThread;
class Counters;
struct Engine;
class GuestWaits;
struct Method;
class Notes;
class OptimizedSamples;

class GuestLoops {
 public:
  // All outlive this.
  GuestLoops(Engine& engine, GuestWaits& guest_waits, Notes& notes, Counters& counters,
             OptimizedSamples& optimized_samples)
      : engine_(engine),
        guest_waits_(guest_waits),
        notes_(notes),
        counters_(counters),
        optimized_samples_(optimized_samples) {}

  // A check of the plain copy, or of the instrumented one, asks at `pc`, which may lie in an older version
  // than the one in service. Returns where the frame goes on.
  const void* loop_plain(uint32_t index, uint32_t loop, const void* pc) noexcept;
  const void* loop_instrumented(uint32_t index, uint32_t loop, const void* pc) noexcept;

 private:
  // `from_copy`: the frame is in the instrumented copy. `pc` lies in the code that asks.
  const void* arrive(Method& m, AttachedThread& t, uint32_t loop, bool from_copy,
                     const void* pc) noexcept;
  // Handles the event that is due. Returns whether the frame should go on in the instrumented copy.
  bool loop_event(Method& m, AttachedThread& t, uint32_t loop, bool from_copy) noexcept;
  // A frame came into the instrumented copy at a loop header, or left it there: an edge of the flow
  // that no code counts.
  void count_crossing(Method& m, AttachedThread& t, uint32_t loop, bool in) noexcept;
  // Returns the OSR entry of optimized code for a loop if there is one and the stack has room for its
  // frame. Asks for one when the method is optimized already and this frame is left behind.
  const void* osr_target(Method& m, uint32_t loop, AttachedThread& t) noexcept;
  // Applies the stress plan: returns optimized code to enter, or null, having changed `in_copy` where
  // the frame is to go on in the other copy.
  const void* stress_arrival(Method& m, uint32_t loop, AttachedThread& t, bool& in_copy) noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
  Notes& notes_;
  Counters& counters_;
  OptimizedSamples& optimized_samples_;
};

}  // namespace uptier::tiering
