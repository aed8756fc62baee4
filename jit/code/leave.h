// leave: how compiled code gives up a frame for another one.
//
// An exit is a call of a routine here; its return address finds the exit's row. The routine saves
// every register in a LeaveState and asks a C function, which picks what to do:
//
//   kEnter     write_frames() copies what the row names into frames of baseline code (or, at a loop
//              header, into the one frame that OSR code is entered from): the outermost
//              takes the place of the old one (same rbp, same return address), the others lie below
//              it as if each had been called from the one before; and jumps into the innermost
//   kReturn    the call is over: returns `result` to the caller
//   kTrap      the call ends with the context's pending trap
//   kStay      restores every register and goes on (ask_to_leave only)
//
// The new frames overlap the old one, so everything is read before anything is written, in a buffer
// below all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "jit/code/code.h"
#include "jit/target/registers.h"

namespace uptier::jit {

// Frames that one exit leaves for, at most: a body and those it is inlined into.
inline constexpr uint32_t kMostExitFrames = 8;

enum class Leave : uint64_t { kEnter, kReturn, kTrap, kStay };

// Every register at the exit, and where the frame goes on. The routine lays it out on the stack.
struct LeaveState {
  // By number from 0. The stack pointer and the scratch register have no meaning.
  uint64_t gp[machine::kFirstFloatRegister] = {};
  uint64_t xmm[machine::kRegCount - machine::kFirstFloatRegister] = {};  // low 64 bits
  // What the C function fills in. kEnter: the code of each frame but the first `skipped`.
  const Code* from = nullptr;
  const ExitRow* row = nullptr;
  const Code* to[kMostExitFrames] = {};
  uint64_t skipped = 0;
  uint64_t at_loop = 0;      // not 0: the one frame goes on in to[0], OSR code, at its entry
  uint64_t frame_bytes = 0;  // of the frames that are made, below rbp
  uint64_t buffer_bytes = 0;
  uint64_t result = 0;       // kReturn, and of a call that a skipped frame was in
  const void* pc = nullptr;  // the exit's return address

  uint64_t rbp() const { return gp[machine::kFramePointer]; }
};
// The call that came here pushed it.
static_assert(offsetof(LeaveState, pc) + sizeof(void*) == sizeof(LeaveState));

// What uptier_write_frames() leaves for the routine at the start of the buffer.
struct Arrival {
  const void* target;  // where the innermost frame goes on
  uint64_t rsp, rbp;   // its stack and frame pointers
  uint64_t result;     // for the registers that a call returns in
  uint64_t saved[std::size(machine::kSavedByLeave)];
};

// Called by the routine for kEnter: reads the values of the row, then writes the frames. `buffer` has
// `buffer_bytes` below all of them; the state itself may be overwritten.
extern "C" void uptier_write_frames(LeaveState* state, uint64_t* buffer) noexcept;

// Called with the state of the thread that leaves; must not throw.
using LeaveSlow = Leave (*)(LeaveState* state, void* runtime);

// Returns an address inside of the code that leaves: the call may be the last of it.
inline const void* inside_of(const LeaveState& s) { return static_cast<const uint8_t*>(s.pc) - 1; }

// Returns the bits of a value of an exit as the code that leaves has it.
uint64_t value_at_exit(const LeaveState& s, const ExitValue& v);

// Fills in state for the frames that the row names, without the first `skipped` of them, whose
// calls are over with `s.result`. `to`: the code of each of the row's frames, made with
// `enterable`; that of skipped ones is not looked at. The row has no more than kMostExitFrames.
void enter_baseline(LeaveState& s, const Code& from, const ExitRow& row,
                    std::span<const Code* const> to, uint32_t skipped = 0);

// Fills in state for the one frame that the row names, in code that is entered by OSR: it finds the
// frame as baseline code would have left it, `frame_bytes` below rbp.
void enter_loop(LeaveState& s, const Code& from, const ExitRow& row, const Code& osr,
                uint64_t frame_bytes);

// Puts the caller's callee-saved registers back into the state, for kReturn.
void restore_saved(LeaveState& s, const Code& from);

}  // namespace uptier::jit
