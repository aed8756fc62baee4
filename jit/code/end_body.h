// end_body: ends compiled code from a signal handler, wherever in a body it is.
//
// What a trap unwinds to is in the innermost Activation, so nothing of the code's registers is
// needed but the frame that a walk over frames begins with (trap_walk.h):
//
//   FrameState::kNone     it is given its frame first, as a fault is (faults.h)
//   FrameState::kPushed   the frame lies at rsp
//   FrameState::kMade     rbp is the frame
//
// Bodies without frame rows stand so before `push`, after it and at `ret`, and else have made theirs.
// In stubs and routines code does not end: it will be elsewhere a moment later.
//
//   Thread: any; async-signal-safe.
#pragma once

#include "uptier/opcodes.h"

namespace uptier::jit {

// `machine`: the handler's third argument (ucontext_t). Returns whether the code ends, with this trap,
// when the handler returns: if its pc lies in a body, and an invoke is under way.
bool end_body(void* machine, TrapCode code) noexcept;

}  // namespace uptier::jit
