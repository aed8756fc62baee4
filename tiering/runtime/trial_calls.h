// TrialCalls: what a call does that comes to something in front of a method's code: a trial of two
// versions (model/trial.h), or a guard of values (model/value_versions.h).
//
//   Thread: the guest's own, below guest frames. The law is in guest.h.
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

  // Returns which version a call of a method on trial runs, and where its time goes. The method's cell
  // leads to the routine that asks this.
  jit::TrialCall trial_call(uint32_t index) noexcept;
  // A guard's window is over, or as many calls have missed as may without a word. Returns where the call
  // goes: to the general version, which is right for it whatever its values are.
  const void* guard_told(uint32_t index) noexcept;

 private:
  // A call came to the trial routine when the trial was over.
  const void* enter_again(Method& m) noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
  GuestCalls& guest_calls_;
};

}  // namespace uptier::tiering
