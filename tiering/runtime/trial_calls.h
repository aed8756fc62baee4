// TrialCalls: handles calls that reach something in front of a method's code: a trial of two
// versions (model/trial.h), or a guard of values (model/value_versions.h).
//
//   Thread: the guest's own, below guest frames. guest.h has the law.
#pragma once

#include <cstdint>

#include "jit/code/routines.h"

namespace uptier::tiering {

struct Engine;
class GuestCalls;
class GuestWaits;
struct Method;

class TrialCalls {
 public:
  // All outlive this.
  TrialCalls(Engine& engine, GuestWaits& guest_waits, GuestCalls& guest_calls)
      : engine_(engine), guest_waits_(guest_waits), guest_calls_(guest_calls) {}

  // Returns the version that a call of a method on trial runs, and where to store its time. Called
  // by the routine that the method's cell leads to.
  jit::TrialCall trial_call(uint32_t index) noexcept;
  // A guard's window is over, or the number of misses allowed without a report was reached. Returns
  // the target of the call: the general version, which is right for any values.
  const void* guard_told(uint32_t index) noexcept;

 private:
  // Handles a call that reached the trial routine when the trial was over.
  const void* enter_again(Method& m) noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
  GuestCalls& guest_calls_;
};

}  // namespace uptier::tiering
