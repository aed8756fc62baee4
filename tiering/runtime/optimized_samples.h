// OptimizedSamples: samples of calls of optimized code, which run its instrumented copy.
//
// control/copy_control.h describes the counts of the copy, and the evaluation of its windows.
//
//   Thread: the guest's own, below guest frames. guest.h has the law.
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

  // Says whether an instrumented copy is in service, or is missing only while its successor is
  // made.
  bool awaits_optimized(const Method& m) const noexcept;
  // Returns the rate that a method should have now.
  sampler::Rate rate_of(const Method& m) const noexcept;
  // A call may be sampled while optimized code is in service: returns the copy to run, or null to
  // run plain code. Samples at the rate of baseline code do not count here.
  const void* optimized_sample(Method& m, AttachedThread& t) noexcept;
  // Begins another sample.
  void count_optimized(Method& m, AttachedThread& t) noexcept;
  // Makes the thread's slab one for this copy. Returns whether that worked.
  bool ready_slab(Method& m, AttachedThread& t, const Version& copy) noexcept;
  sampler::Note optimized_note(Method& m, AttachedThread& t) noexcept;

 private:
  // Passes the counts of the copy on. Returns whether the ring had room; counts are cumulative, so
  // the next note contains them in any case.
  bool post_optimized(Method& m, AttachedThread& t) noexcept;
  // The rate of methods with observed optimized code.
  sampler::Rate optimized_rate(const Method& m) const noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
  Notes& notes_;
};

}  // namespace uptier::tiering
