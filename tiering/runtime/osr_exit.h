// OsrExit: frames of old optimized code are called back, to newer code of the same loop if there is any.
//
//   worker   a callee comes into service that a version reaches by its stub, or the version is
//            taken out of service: its poll words are set, one a loop
//   guest    finds one set at a loop header. Is there newer code for this loop? Then the frame goes
//            there; if not, the word is cleared, the code is asked for, and the frame stays
//   worker   makes that code when it is due (control/newer_code.h), installs it, and sets the words of
//            older versions again
//
// So a frame never waits in plainer code, and a check that finds nothing costs once. The words of
// versions that calls still reach are set for one frame at a time: what comes after it is no older
// than the code that calls reach.
//
//   Thread: the guest's own, below guest frames. The law is in guest.h.
#pragma once

#include "jit/code/leave.h"

namespace uptier::tiering {

class BaselineFrames;
struct Engine;
class FrameMoves;
class GuestWaits;
struct Method;
class ObservedRounds;
struct Version;

// Records, for subscribers of events, that a frame of the calling thread left code at an exit, for a
// reason (static); and that it went on in another version. Cost: a load while nobody wants to know.
void note_left(const Engine& engine, const jit::Code& from, const char* why,
               uint32_t exit) noexcept;
void note_moved(const Engine& engine, const Version& to, const jit::Code& from) noexcept;

class OsrExit {
 public:
  // All outlive this.
  OsrExit(Engine& engine, GuestWaits& guest_waits, BaselineFrames& baseline_frames,
          FrameMoves& frame_moves, ObservedRounds& observed_rounds)
      : engine_(engine),
        guest_waits_(guest_waits),
        baseline_frames_(baseline_frames),
        frame_moves_(frame_moves),
        observed_rounds_(observed_rounds) {}

  // Optimized code asks at a loop header, whose poll word is set. Returns whether the frame stays.
  jit::Leave poll(jit::LeaveState& s, const jit::Code& from, const jit::ExitRow& row) noexcept;

 private:
  // Applies the stress plan. Words are never 0. A point that is forced goes to code for this loop, which
  // is made on the spot: every third one to baseline code, every third one to an instrumented copy.
  jit::Leave stress_poll(Method& m, jit::LeaveState& s, const jit::Code& from,
                         const jit::ExitRow& row) noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
  BaselineFrames& baseline_frames_;
  FrameMoves& frame_moves_;
  ObservedRounds& observed_rounds_;
};

}  // namespace uptier::tiering
