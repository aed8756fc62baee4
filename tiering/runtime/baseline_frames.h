// BaselineFrames: turns a frame of optimized code into frames of baseline code (deoptimization).
//
//   Thread: the guest's own, below guest frames. guest.h has the law.
#pragma once

#include <cstdint>
#include <span>

#include "jit/code/code.h"
#include "jit/code/leave.h"

namespace uptier::tiering {

struct Engine;
class GuestWaits;
struct Method;
struct Version;

// Returns the frames that an exit describes, the innermost body's first.
inline std::span<const jit::ExitFrame> exit_frames_of(const jit::Code& from,
                                                      const jit::ExitRow& row) {
  return {from.tables().exit_frames.data() + row.frames_at, row.frames};
}

class BaselineFrames {
 public:
  // All outlive this.
  BaselineFrames(Engine& engine, GuestWaits& guest_waits)
      : engine_(engine), guest_waits_(guest_waits) {}

  // Makes the frames that the row describes, and records that the frame left for a reason (static).
  // `s`: the state of the frame that leaves the code `from`.
  jit::Leave leave_for_baseline(jit::LeaveState& s, const jit::Code& from, const jit::ExitRow& row,
                                const char* why) noexcept;
  // The same for the callers of the innermost body only, and records nothing.
  jit::Leave leave_callers_for_baseline(jit::LeaveState& s, const jit::Code& from,
                                        const jit::ExitRow& row) noexcept;

 private:
  jit::Leave make_frames(jit::LeaveState& s, const jit::Code& from, const jit::ExitRow& row,
                         uint32_t skipped, std::span<const jit::Code* const> to) noexcept;
  // Fills `to` with baseline code for each frame. Returns the first method that the host no longer
  // describes, or null.
  const Method* find_enterable(const jit::Code& from, const jit::ExitRow& row, uint32_t skipped,
                               const jit::Code** to) noexcept;
  // Returns the method's baseline code for frames that exit optimized code, and makes it if
  // necessary; null if the host no longer describes the method.
  const Version* enterable_version(Method& m) noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
};

}  // namespace uptier::tiering
