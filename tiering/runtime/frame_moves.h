// FrameMoves: moves a frame of optimized code to other code of the same loop, and asks for such code.
//
//   Thread: the guest's own, below guest frames. The law is in guest.h.
#pragma once

#include <cstdint>

#include "jit/code/leave.h"
#include "jit/code/poll_words.h"

namespace uptier::tiering {

class AttachedThread;
struct Engine;
class GuestWaits;
struct Method;

// Counts that a frame of the method went to newer code.
jit::Leave moved(Method& m);
// Whether calls of the method may run the code: by themselves, or behind the guard of a version for
// values.
bool calls_reach(const Method& m, const jit::Code& code);

class FrameMoves {
 public:
  // All outlive this.
  FrameMoves(Engine& engine, GuestWaits& guest_waits)
      : engine_(engine), guest_waits_(guest_waits) {}

  // Says in `s` that the frame goes to `osr`. Returns whether there is stack for it.
  static bool prepare_move(jit::LeaveState& s, const jit::Code& from, const jit::ExitRow& row,
                           const jit::Code& osr);
  // Whether calls of the thread reach the code, so often that they are what it is known for.
  static bool known_for_calls(const Method& m, AttachedThread& t, const jit::Code& from) noexcept;
  // Asks the worker, once, for newer code of the loop. `word`: the loop's poll word.
  void ask_for_newer(Method& m, uint32_t loop, const jit::Code& from, jit::PollWord& word) noexcept;

 private:
  Engine& engine_;
  GuestWaits& guest_waits_;
};

}  // namespace uptier::tiering
