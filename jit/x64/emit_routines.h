// The routines with files of their own. Each function emits one at the current offset of a buffer.
// The headers that declare the callers describe the routines: code/routines.h, code/leave.h,
// code/loop_routines.h and code/probe_routines.h.
#pragma once

#include "jit/code/leave.h"
#include "jit/code/loop_routines.h"
#include "jit/code/probe_routines.h"
#include "jit/x64/code_buffer.h"

namespace uptier::jit {

// `asks`: emits the routine that may come back.
void emit_leave(CodeBuffer& b, LeaveSlow slow, void* runtime, const Label& trap_exit, bool asks);

void emit_loop_plain(CodeBuffer& b, const LoopRoutines& r);
void emit_loop_instrumented(CodeBuffer& b, const LoopRoutines& r);

void emit_probe_routine(CodeBuffer& b, ProbeRoutine r);
// Emits void(uint64_t* slab): an entry of the loop site at offset 0, with a draw, and an exit from
// it, as in compiled code. For LoopTimer::measure.
void emit_loop_pair(CodeBuffer& b, const Label& enter, const Label& leave);

}  // namespace uptier::jit
