// The routines that have files of their own: each function emits one at the current offset of a
// buffer. What the routines do is said where they are called from: code/routines.h, code/leave.h,
// code/loop_routines.h and code/probe_routines.h.
#pragma once

#include "jit/code/leave.h"
#include "jit/code/loop_routines.h"
#include "jit/code/probe_routines.h"
#include "jit/x64/code_buffer.h"

namespace uptier::jit {

// `asks`: the one that may come back.
void emit_leave(CodeBuffer& b, LeaveSlow slow, void* runtime, const Label& trap_exit, bool asks);

void emit_loop_plain(CodeBuffer& b, const LoopRoutines& r);
void emit_loop_instrumented(CodeBuffer& b, const LoopRoutines& r);

void emit_probe_routine(CodeBuffer& b, ProbeRoutine r);
// Emits void(uint64_t* slab): an enter, drawn, and a leave of the loop site at offset 0, as in
// compiled code. For LoopTimer::measure.
void emit_loop_pair(CodeBuffer& b, const Label& enter, const Label& leave);

}  // namespace uptier::jit
