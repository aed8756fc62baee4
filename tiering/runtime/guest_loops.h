// GuestLoops: handles checks at loop headers: the frame continues where it is, in the other copy of
// the body, or in optimized code of the loop (on-stack replacement).
//
//   Thread: the guest's own, below guest frames. guest.h has the law.
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

  // Handle a check at `pc` in the plain or the instrumented copy; the version may be older than the
  // one in service. Return the address where the frame continues.
  const void* loop_plain(uint32_t index, uint32_t loop, const void* pc) noexcept;
  const void* loop_instrumented(uint32_t index, uint32_t loop, const void* pc) noexcept;

 private:
  // `from_copy`: the frame is in the instrumented copy. `pc` is in the calling code.
  const void* arrive(Method& m, AttachedThread& t, uint32_t loop, bool from_copy,
                     const void* pc) noexcept;
  // Handles the due event. Returns whether the frame should continue in the instrumented copy.
  bool loop_event(Method& m, AttachedThread& t, uint32_t loop, bool from_copy) noexcept;
  // A frame entered the instrumented copy at a loop header, or left it there: a flow edge that no
  // code counts.
  void count_crossing(Method& m, AttachedThread& t, uint32_t loop, bool in) noexcept;
  // Returns the entry of optimized code for a loop if there is one and the stack has room for its
  // frame. If there is none although the method is optimized, requests it for this frame.
  const void* osr_target(Method& m, uint32_t loop, AttachedThread& t) noexcept;
  // Applies stress: returns optimized code to enter, or null; changes `in_copy` if the frame must
  // continue in the other copy.
  const void* stress_arrival(Method& m, uint32_t loop, AttachedThread& t, bool& in_copy) noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
  Notes& notes_;
  Counters& counters_;
  OptimizedSamples& optimized_samples_;
};

}  // namespace uptier::tiering
