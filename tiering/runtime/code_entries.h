// CodeEntries: the C functions that compiled code and its routines call, in one table.
//
// Each gets the Engine as its last argument and calls a member of the Guest directly (guest.h).
// None of them throws.
#pragma once

#include "jit/code/leave.h"
#include "jit/code/loop_routines.h"
#include "jit/code/routines.h"

namespace uptier::tiering {

struct CodeEntries {
  jit::EntrySlow enter;       // a call whose countdown is due, or whose method has no code
  jit::TrialSlow trial_call;  // a call of a method with a trial of two versions
  jit::EntrySlow guard_told;  // a guard in front of a version for values has to report
  jit::LoopSlow loop_plain;   // the check at a loop header of the plain copy
  jit::LoopSlow loop_instrumented;
  jit::LeaveSlow leave;                  // an exit of optimized code
  jit::LeaveSlow ask_to_leave;           // a poll: an exit that may stay
  jit::TrapWalk::Report frames_dropped;  // a trap is about to unwind frames that count edges
  void (*orphaned_trap)(void* engine);   // a trap without a running invoke; does not return
};

// Returns the table.
CodeEntries code_entries() noexcept;

}  // namespace uptier::tiering
