// Traps: putting a trap into a thread's context, and taking it out again.
//
// A trap is pending from put_trap() until the frames of compiled code below the innermost invoke
// have been unwound, and take_trap() is called there. A thread has at most one pending trap; a
// second one is lost, and counted.
//
//   Thread: the one that owns the context; the first two functions also in signal handlers.
#pragma once

#include <cstdint>

#include "jit/code/leave.h"
#include "sampler/context.h"
#include "uptier/ids.h"
#include "uptier/runtime.h"

namespace uptier::tiering {

// Makes a trap pending, even without a running invoke.
void put_trap(sampler::ThreadContext& c, TrapCode code, uint64_t detail) noexcept;
// Counts a trap that is never taken.
void lose_trap(sampler::ThreadContext& c) noexcept;
// Takes the pending trap and returns it, with its location.
Trap take_trap(sampler::ThreadContext& c);
// On the calling thread: makes the trap kNoCode of a method pending.
void raise_no_code(MethodId m) noexcept;
// On the calling thread: makes a trap pending, and ends an exit with it.
jit::Leave leave_by_trap(TrapCode code) noexcept;

}  // namespace uptier::tiering
