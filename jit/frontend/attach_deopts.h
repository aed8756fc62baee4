// attach_deopts: makes a function's guards exit to baseline code instead of trapping.
//
// A guard gets the values that its frames need as operands after the condition. So every pass keeps
// them as it keeps any use, and they are known where the code is emitted. They need no register:
// see Policy::kState.
//
//   Thread: none of their own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jit/analysis/deopt_targets.h"
#include "jit/analysis/frame_layout.h"
#include "jit/ir/function.h"

namespace uptier::jit {

// The facts about the function as it was built that exits need.
struct DeoptContext {
  const Liveness& live;
  const FrameLayout& frame;
  uint32_t guards = 0;    // count_guards()
  bool stressed = false;  // guards ask the runtime whether to fail even if they hold
};

// Attaches guards that the host declared. `to_host`: they exit to the host's interpreter, with the
// values that their frame_states name. `f` is as it was built.
void attach_deopts(Function& f, const DeoptContext& c, bool to_host);

// A call state: a frame_state with operands and a row like a guard's, for the place where the frame
// resumes when the call after it returns. Bodies inlined in place of the call exit to that frame
// too. `aux` is the row's index + 1, `site` and `body` are the call's.
inline constexpr uint8_t kCallState = 1;
inline bool is_call_state(const Inst& i) {
  return i.op == Opcode::kFrameState && (i.flags & kCallState) != 0;
}

// Puts a call state in front of each call of a method. `f` is as it was built, except for the other
// functions here. They must be removed before code is made: see drop_call_states.
void attach_call_states(Function& f, const Function& built, const DeoptContext& c);
void drop_call_states(Function& f);

// Puts a guard on a constant at the start of each block except the entry; the runtime may make it
// fail. For tests.
void add_block_guards(Function& f, const DeoptContext& c);

// Makes these headers poll a word of their code, which tells the frame to leave (Deopt::polls).
// This is how frames of old code are called back. `f` is as it was built.
void add_loop_polls(Function& f, const DeoptContext& c, std::span<const LoopId> polling);

}  // namespace uptier::jit
