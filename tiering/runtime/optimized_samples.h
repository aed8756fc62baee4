// OptimizedSamples: samples of calls of optimized code, which run its instrumented copy.
//
// What the copy counts, and what its windows say, is in control/copy_control.h.
//
//   Thread: the guest's own, below guest frames. The law is in guest.h.
#pragma once

#include <atomic>

#include "sampler/rate.h"
#include "sampler/snapshot_ring.h"

namespace uptier::tiering {

class AttachedThread;
struct Engine;
class GuestWaits;
struct Method;
class Notes;
struct Version;

class OptimizedSamples {
 public:
  // All outlive this.
  OptimizedSamples(Engine& engine, GuestWaits& guest_waits, Notes& notes)
      : engine_(engine), guest_waits_(guest_waits), notes_(notes) {}

  // Whether an instrumented copy is in service, or is away only while its successor is made.
  bool awaits_optimized(const Method& m) const noexcept;
  // Returns the rate that a method should have now.
  sampler::Rate rate_of(const Method& m) const noexcept;
  // A call is due to be observed while optimized code is in service: returns the copy that it runs, or
  // null when it runs plain. Samples at the rate of baseline code are none.
  const void* optimized_sample(Method& m, AttachedThread& t) noexcept;
  // Another sample begins.
  void count_optimized(Method& m, AttachedThread& t) noexcept;
  // Makes the thread's slab one of this copy. Returns whether it is.
  bool ready_slab(Method& m, AttachedThread& t, const Version& copy) noexcept;
  sampler::Note optimized_note(Method& m, AttachedThread& t) noexcept;

 private:
  // Hands over what the copy counted. Returns whether the ring took it; the counts are cumulative, so
  // what it refused is contained in the next note.
  bool post_optimized(Method& m, AttachedThread& t) noexcept;
  // The rate of methods whose optimized code is observed.
  sampler::Rate optimized_rate(const Method& m) const noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
  Notes& notes_;
};

}  // namespace uptier::tiering
