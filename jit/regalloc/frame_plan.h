// FramePlan: where the frame is made, and which blocks run without one.
//
// A *bare* block runs in the state that the caller left: rsp points at the return address; rbp and
// the callee-saved registers still hold the caller's values. The law:
//
//   - a block is bare only if nothing in it needs the frame, and all its predecessors are bare. So
//     a call makes the frame at most once, where control leaves the bare blocks, and never in a
//     loop.
//   - the frame is needed by calls of any kind, since their return address is found through rbp and
//     the stack is checked before they are made; by exits and polls (kLeave, guards),
//     since their rows give locations relative to rbp; by probes that count in a slab; by slots,
//     parameters in memory, and callee-saved registers. OSR versions have a frame from the start,
//     and so have versions for known values, which keep those values in it. An instruction that may
//     trap does not need the frame: the fault handler makes one (code/faults.h), guided by the rows
//     that emission writes (code/frame_row.h).
//   - code before an entry (stubs, guards of value versions, trials) has pushed nothing, or a frame
//     of its own, so a bare beginning makes no difference to it.
//   - a body is bare throughout if possible. Otherwise it begins bare if enough calls return from
//     bare blocks, and if only a few places have to make the frame.
//
// If a body cannot be bare throughout, the register allocator is asked in advance to avoid
// callee-saved registers in some blocks (MBlock::bare). The plan then follows from the registers
// that it chose.
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

// Sets MBlock::bare for the blocks that should run without the frame. If a bare block jumps to a
// block that only returns, and framed blocks jump there too, the bare block gets its own return
// instead. Cost: linear; constant for bodies that cannot begin bare.
void ask_for_bare_blocks(MachineFunction& m);

// Returns the plan of a body that has the frame throughout.
FramePlan frame_from_start(const MachineFunction& m);

// Returns the plan that the allocation allows. If block 0 is not bare, the frame is made before it.
FramePlan plan_frame(const MachineFunction& m, const Allocation& a);

}  // namespace uptier::jit::machine
