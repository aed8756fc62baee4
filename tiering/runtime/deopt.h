// Deopt: called by exits of compiled code: a guard has failed, or control has reached a removed
// block.
//
//   Thread: the guest's own, below guest frames. guest.h has the law.
#pragma once

#include <cstdint>

#include "jit/code/leave.h"

namespace uptier::tiering {

class BaselineFrames;
struct Engine;
class GuestWaits;
struct Method;
class Notes;
class OsrExit;

class Deopt {
 public:
  // All outlive this.
  Deopt(Engine& engine, GuestWaits& guest_waits, Notes& notes, BaselineFrames& baseline_frames,
        OsrExit& osr_exit)
      : engine_(engine),
        guest_waits_(guest_waits),
        notes_(notes),
        baseline_frames_(baseline_frames),
        osr_exit_(osr_exit) {}

  // The frame described by `s` leaves its code. `forced`: no guard has failed, so the exit is not
  // counted.
  jit::Leave leave(jit::LeaveState& s, bool forced) noexcept;
  // Code polls: at a loop header whose poll word is set, or because of stress.
  jit::Leave ask_to_leave(jit::LeaveState& s) noexcept;

 private:
  // The frame continues in the host's interpreter.
  jit::Leave leave_for_host(Method& m, jit::LeaveState& s, const jit::Code& from,
                            const jit::ExitRow& row) noexcept;
  // Counts an exit. If it reaches the limit, acts on that.
  void count_exit(Method& m, uint32_t exit) noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
  Notes& notes_;
  BaselineFrames& baseline_frames_;
  OsrExit& osr_exit_;
};

}  // namespace uptier::tiering
