// leave: how compiled code replaces its frame by other frames.
//
// An exit is a call of a routine here; its return address identifies the exit's row. The routine
// saves every register in a LeaveState and calls a C function, which chooses what to do:
//
//   kEnter     write_frames() copies the values of the row into frames of baseline code (or, at a loop
//              header, into the one frame that OSR code is entered from): the outermost replaces the
//              old frame (same rbp, same return address), the others lie below it as if each had been
//              called from the one before. Then it jumps into the innermost
//   kReturn    the call is over: returns `result` to the caller
//   kTrap      the call ends with the context's pending trap
//   kStay      restores every register and continues (ask_to_leave only)
//
// The new frames overlap the old one, so everything is read before anything is written, into a
// buffer below all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "jit/code/code.h"
#include "jit/target/registers.h"

namespace uptier::jit {

// The most frames that one exit creates: those of a body and of the bodies it is inlined into.
inline constexpr uint32_t kMostExitFrames = 8;

enum class Leave : uint64_t { kEnter, kReturn, kTrap, kStay };

// Every register at the exit, and where the frame resumes. The routine lays it out on the stack.
struct LeaveState {
  // Indexed by register number. The entries of the stack pointer and the scratch register are
  // meaningless.
  uint64_t gp[machine::kFirstFloatRegister] = {};
  uint64_t xmm[machine::kRegCount - machine::kFirstFloatRegister] = {};  // low 64 bits
  // Filled in by the C function. kEnter: the code of each frame except the first `skipped`.
  const Code* from = nullptr;
  const ExitRow* row = nullptr;
  const Code* to[kMostExitFrames] = {};
  uint64_t skipped = 0;
  uint64_t at_loop = 0;      // not 0: one frame only; it resumes in to[0], OSR code, at its entry
  uint64_t frame_bytes = 0;  // size of the new frames, below rbp
  uint64_t buffer_bytes = 0;
  uint64_t result = 0;       // kReturn, and the result of a call in a skipped frame
  const void* pc = nullptr;  // the exit's return address

  uint64_t rbp() const { return gp[machine::kFramePointer]; }
};
// `pc` is last because the call of the routine pushed it.
static_assert(offsetof(LeaveState, pc) + sizeof(void*) == sizeof(LeaveState));

// Written by uptier_write_frames() at the start of the buffer, for the routine.
struct Arrival {
  const void* target;  // where the innermost frame resumes
  uint64_t rsp, rbp;   // the stack and frame pointers of that frame
  uint64_t result;     // for the registers that return a call's result
  uint64_t saved[std::size(machine::kSavedByLeave)];
};

// Called by the routine for kEnter: reads the values of the row, then writes the frames. `buffer`
// has `buffer_bytes` below all of them; the state itself may be overwritten.
extern "C" void uptier_write_frames(LeaveState* state, uint64_t* buffer) noexcept;

// Called with the state of the thread that leaves; must not throw.
using LeaveSlow = Leave (*)(LeaveState* state, void* runtime);

// Returns an address inside of the leaving code: the call may be its last instruction.
inline const void* inside_of(const LeaveState& s) { return static_cast<const uint8_t*>(s.pc) - 1; }

// Returns the bits of an exit's value, read from the state of the leaving code.
uint64_t value_at_exit(const LeaveState& s, const ExitValue& v);

// Fills in the state to create the frames that the row names, without the first `skipped` of them,
// whose calls are over with `s.result`. `to`: the code of each of the row's frames, compiled with
// `enterable`; entries of skipped frames are ignored. The row has at most kMostExitFrames.
void enter_baseline(LeaveState& s, const Code& from, const ExitRow& row,
                    std::span<const Code* const> to, uint32_t skipped = 0);

// Fills in the state to create the one frame that the row names, and to enter OSR code in it: the
// code finds the frame as baseline code would have left it, `frame_bytes` below rbp.
void enter_loop(LeaveState& s, const Code& from, const ExitRow& row, const Code& osr,
                uint64_t frame_bytes);

// Puts the caller's callee-saved registers back into the state, for kReturn.
void restore_saved(LeaveState& s, const Code& from);

}  // namespace uptier::jit
