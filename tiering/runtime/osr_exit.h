// OsrExit: calls frames of old optimized code back, to newer code of the same loop if there is any.
//
//   worker   a callee that a version calls by its stub was optimized, or the version is taken out of
//            service: its poll words are set, one per loop
//   guest    finds one set at a loop header. If there is newer code for this loop, the frame moves
//            there; if not, the word is cleared, the code is requested, and the frame stays
//   worker   makes that code when it is due (control/newer_code.h), installs it, and sets the words of
//            older versions again
//
// So a frame never waits in plainer code, and a poll that finds nothing costs only once. The words
// of versions that calls still reach are set for one frame at a time: later frames are no older
// than the code that calls reach.
//
//   Thread: the guest's own, below guest frames. guest.h has the law.
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

// Records, for subscribers of events, that a frame of the calling thread left code at an exit, for
// a reason (static), and goes on in `to` (null: in the host's code, or not at all); and that it moved
// to another version. Cost: a load if no subscriber wants it.
void note_left(const Engine& engine, const jit::Code& from, const jit::Code* to, const char* why,
               const jit::ExitRow& row) noexcept;
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

  // Optimized code polls at a loop header, and its poll word is set. Returns whether the frame
  // stays.
  jit::Leave poll(jit::LeaveState& s, const jit::Code& from, const jit::ExitRow& row) noexcept;

 private:
  // Applies stress; then words are never 0. At a forced point the frame moves to code for this
  // loop, made on the spot: every third one to baseline code, every third one to an instrumented
  // copy.
  jit::Leave stress_poll(Method& m, jit::LeaveState& s, const jit::Code& from,
                         const jit::ExitRow& row) noexcept;

  Engine& engine_;
  GuestWaits& guest_waits_;
  BaselineFrames& baseline_frames_;
  FrameMoves& frame_moves_;
  ObservedRounds& observed_rounds_;
};

}  // namespace uptier::tiering
