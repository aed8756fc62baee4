// attach_deopts: makes a function's guards leave for baseline code instead of trapping.
//
// A guard gets the values that its frames need as operands after the condition, so every pass
// keeps them as it keeps any use, and what they have become is known where the code is emitted.
// They want no register: see Policy::kState.
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

// What leaving needs to know of the function as it was built.
struct DeoptContext {
  const Liveness& live;
  const FrameLayout& frame;
  uint32_t guards = 0;    // count_guards()
  bool stressed = false;  // guards ask the runtime whether to fail although they hold
};

// Guards that the host declared. `to_host`: they leave for the host's interpreter, with the values
// that their frame_states name. `f` as it was built.
void attach_deopts(Function& f, const DeoptContext& c, bool to_host);

// A frame_state that says, with operands and a row like a guard's, where the frame goes on when the
// call after it returns: bodies that take the call's place leave for that frame too. `aux` is the
// row's index + 1, `site` and `body` are the call's.
inline constexpr uint8_t kCallState = 1;
inline bool is_call_state(const Inst& i) {
  return i.op == Opcode::kFrameState && (i.flags & kCallState) != 0;
}

// Puts a call state in front of each call of a method. `f` as it was built, except what the others
// here did. Before code is made they must go: see drop_call_states.
void attach_call_states(Function& f, const Function& built, const DeoptContext& c);
void drop_call_states(Function& f);

// Puts a guard on a constant at the start of each block but the entry, which the runtime may fail.
// For tests.
void add_block_guards(Function& f, const DeoptContext& c);

// Makes these headers ask a word of their code whether the frame is to leave (Deopt::polls): how a
// frame of old code is called back. `f` as it was built.
void add_loop_polls(Function& f, const DeoptContext& c, std::span<const LoopId> polling);

}  // namespace uptier::jit
