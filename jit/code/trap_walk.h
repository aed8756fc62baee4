// trap_walk: reports the frames that a trap is about to drop to the counting of edges, and keeps the addresses
// of the innermost ones for the trap's message (ThreadContext::trap_frames).
//
// A frame that a trap unwinds has entered its block and will never leave it, so the flow through
// the block would not balance. Before trap_exit unwinds to the innermost invoke, it walks the
// frames up to there, innermost first. It reports each frame of an edge-counting copy with the
// block that the frame was in. A frame whose prologue trapped has entered no block and is not
// reported.
//
//   [rbp]      the caller's rbp: code of either compiler keeps this chain where it calls
//   [rbp + 8]  the return address, in the block that called
//
// Optimized code that calls nothing may run without a frame; if it faults, it first gets one
// (faults.h).
//
// Frames that are not ours (of a host function that calls an entry directly, without an invoke) may
// hold anything in rbp. The walk continues only to higher addresses below the invoke's frame, so it
// ends, and reads only the thread's own stack.
//
//   Thread: the one that traps, on its own stack, with at least the reserve that prologues keep. No
//   allocation, no lock. Cost: a few ns a frame. While the space holds no such copy, the walk ends after the frames that are kept.
#pragma once

#include <cstdint>

#include "jit/code/code_space.h"
#include "uptier/ids.h"

namespace uptier::jit {

// Receives `frames` adjacent frames of one method, all in one block. Must not throw, allocate or
// lock.
struct TrapWalk {
  using Report = void (*)(uint32_t method, SiteId block, uint64_t frames, void* runtime);
  Report report = nullptr;  // null: no walk
  void* runtime = nullptr;
  // Called, on the trapping stack, if there is no invoke to unwind to; must not return.
  void (*orphaned)(void* runtime) = nullptr;
};

// Walks from a frame of compiled code up to the calling thread's innermost invoke. `pc` lies in the
// instruction that the frame is executing, `rbp` is its frame pointer.
void walk_frames(const CodeSpace& space, const TrapWalk& walk, uint64_t pc, uint64_t rbp) noexcept;

}  // namespace uptier::jit
