// end_body: ends compiled code from a signal handler, at any instruction of a body.
//
// The innermost Activation holds the place to which a trap unwinds, so no register of the code is
// needed except the frame at which a walk over frames begins (trap_walk.h):
//
//   FrameState::kNone     the handler first makes a frame, as for a fault (faults.h)
//   FrameState::kPushed   the frame lies at rsp
//   FrameState::kMade     rbp is the frame
//
// Bodies without frame rows have the first two states before `push`, after it and at `ret`, and
// otherwise the third. Code in stubs and routines is not ended there: a moment later it is
// elsewhere.
//
//   Thread: any; async-signal-safe.
#pragma once

#include "uptier/opcodes.h"

namespace uptier::jit {

// `machine`: the handler's third argument (ucontext_t). Returns whether the code will end with this
// trap when the handler returns, which requires that its pc lies in a body and that an invoke is
// under way.
bool end_body(void* machine, TrapCode code) noexcept;

}  // namespace uptier::jit
