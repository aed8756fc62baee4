// leave: how compiled code gives up a frame for another one.
//
// An exit is a call of a routine here; its return address finds the exit's row. The routine saves
// every register in a LeaveState and asks a C function, which picks what to do:
//
//   kEnter     write_frame() copies what the row names into the frame of baseline code, which takes
//              the place of the old one (same rbp, same return address), and jumps into it
//   kReturn    the call is over: returns `result` to the caller
//   kTrap      the call ends with the context's pending trap
//   kStay      restores every register and goes on (ask_to_leave only)
//
// The new frame overlaps the old one, so everything is read before anything is written, in a buffer
// below both.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jit/code/asmjit.h"
#include "jit/code/code.h"

namespace uptier::jit {

class CodeBuffer;

enum class Leave : uint64_t { kEnter, kReturn, kTrap, kStay };

struct LeaveState {
  uint64_t gp[16] = {};   // by encoding; rsp is not meaningful, nor is r11
  uint64_t xmm[16] = {};  // low halves
  // What the C function fills in. kEnter: the code to enter, and where; of its own frame.
  const Code* from = nullptr;
  const ExitRow* row = nullptr;
  const void* target = nullptr;
  uint64_t frame_bytes = 0;  // of the frame that is entered, below rbp
  uint64_t buffer_bytes = 0;
  uint64_t result = 0;       // kReturn
  const void* pc = nullptr;  // the exit's return address

  uint64_t rbp() const { return gp[5]; }
};
static_assert(sizeof(LeaveState) == 312);

// Called with the state of the thread that leaves; must not throw.
using LeaveSlow = Leave (*)(LeaveState* state, void* runtime);

// Returns an address inside of the code that leaves: the call may be the last of it.
inline const void* inside_of(const LeaveState& s) { return static_cast<const uint8_t*>(s.pc) - 1; }

// Returns the bits of a value of an exit as the code that leaves has it.
uint64_t value_at_exit(const LeaveState& s, const ExitValue& v);

// Fills in state for a frame of `to`, whose method's frame the exit's only one is: entered at the
// point that the row names. `to` was made with `enterable`.
void enter_baseline(LeaveState& s, const Code& from, const ExitRow& row, const Code& to);

// Puts the caller's callee-saved registers back into the state, for kReturn.
void restore_saved(LeaveState& s, const Code& from);

// Emits a routine; `asks`: the one that may come back.
void emit_leave(CodeBuffer& b, LeaveSlow slow, void* runtime, const Label& trap_exit, bool asks);

}  // namespace uptier::jit
