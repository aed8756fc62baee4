// FramePlan: where the frame is made, and which blocks run without one.
//
// A *bare* block runs as the caller has left things: rsp points at the return address; rbp and the
// callee-saved registers are the caller's. The law:
//
//   - a block is bare only if nothing in it needs the frame, and all that lead to it are bare. So a
//     call makes the frame once at most, where it leaves the bare blocks, and in no loop.
//   - what needs the frame: calls of any kind, for their return address is looked for from rbp and
//     the stack is checked before they are made; exits, polls and questions (kLeave, guards), whose
//     rows say what lies where from rbp; what counts in a slab; slots, parameters in memory, and
//     callee-saved registers. OSR versions have one from the start, and so have versions for known
//     values, which keep these in it. What may trap does not need it:
//     a fault is given its frame by the handler (code/faults.h), told by the rows that emission
//     writes (code/frame_row.h).
//   - what stands before an entry (stubs, guards of values' versions, trials) has pushed nothing, or a
//     frame of its own: a bare beginning makes no difference to it.
//   - a body is bare throughout if it can be. Otherwise it begins bare if calls return from bare
//     blocks often enough, and if the frame need not be made in too many places.
//
// Where a body cannot be bare throughout, the register allocator is asked beforehand not to use
// callee-saved registers in some blocks (MBlock::bare); what it has made of it decides.
#pragma once

#include <vector>

#include "jit/machine/machine.h"
#include "jit/regalloc/allocation.h"

namespace uptier::jit::machine {

struct FramePlan {
  enum class Makes : uint8_t { kNot, kAtStart, kAtEnd };  // kAtEnd: before the jump's own moves
  std::vector<bool> bare;                                 // by block
  std::vector<Makes> makes;                               // by block: where the frame is made

  bool all_bare() const;
};

// Sets MBlock::bare of the blocks that had better run without the frame. Where a bare block jumps to
// one that does nothing but return, and that others reach with a frame, it returns by itself. Cost:
// linear, and nothing in bodies that cannot begin bare.
void ask_for_bare_blocks(MachineFunction& m);

// Returns the plan of a body that has the frame throughout.
FramePlan frame_from_start(const MachineFunction& m);

// Returns what came of it. Where block 0 is not bare, the frame is made before it.
FramePlan plan_frame(const MachineFunction& m, const Allocation& a);

}  // namespace uptier::jit::machine
