// FrameMoves: moves a frame of optimized code to other code of the same loop, and requests such
// code.
//
//   Thread: the guest's own, below guest frames. guest.h has the law.
#pragma once

#include <cstdint>

#include "jit/code/leave.h"
#include "jit/code/poll_words.h"

namespace uptier::tiering {

class AttachedThread;
struct Engine;
class GuestWaits;
struct Method;

// Counts a frame of the method that moved to newer code.
jit::Leave moved(Method& m);
// Says whether calls of the method may run the code: directly, or after the guard of a version for
// values.
bool calls_reach(const Method& m, const jit::Code& code);

class FrameMoves {
 public:
  // All outlive this.
  FrameMoves(Engine& engine, GuestWaits& guest_waits)
      : engine_(engine), guest_waits_(guest_waits) {}

  // Sets up `s` for a move to `osr`. Returns whether the stack has room for it.
  static bool prepare_move(jit::LeaveState& s, const jit::Code& from, const jit::ExitRow& row,
                           const jit::Code& osr);
  // Says whether the thread calls the code so often that it is observed by calls.
  static bool known_for_calls(const Method& m, AttachedThread& t, const jit::Code& from) noexcept;
  // Requests newer code of the loop from the worker, once. `word`: the loop's poll word.
  void ask_for_newer(Method& m, uint32_t loop, const jit::Code& from, jit::PollWord& word) noexcept;

 private:
  Engine& engine_;
  GuestWaits& guest_waits_;
};

}  // namespace uptier::tiering
