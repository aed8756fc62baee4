// Traps: how a trap is put into a thread's context, and how it is taken out again.
//
// A trap is pending from put_trap() until the frames of compiled code below the innermost invoke have
// been unwound, and take_trap() is called there. A thread has at most one; a second one is lost, and
// counted.
//
//   Thread: the one whose context it is; the first two in signal handlers, too.
#pragma once

#include <cstdint>

#include "jit/code/leave.h"
#include "sampler/context.h"
#include "uptier/ids.h"
#include "uptier/runtime.h"

namespace uptier::tiering {

// Makes a trap pending, also where no invoke is under way.
void put_trap(sampler::ThreadContext& c, TrapCode code, uint64_t detail) noexcept;
// Counts a trap that nobody takes.
void lose_trap(sampler::ThreadContext& c) noexcept;
// Takes the pending trap out, and says where it happened.
Trap take_trap(sampler::ThreadContext& c);
// On the calling thread: makes the trap kNoCode of a method pending.
void raise_no_code(MethodId m) noexcept;
// On the calling thread: makes a trap pending, and has an exit end with it.
jit::Leave leave_by_trap(TrapCode code) noexcept;

}  // namespace uptier::tiering
