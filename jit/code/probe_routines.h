// Probe routines: compiled code calls a C function that makes an observation; all registers are
// kept.
//
//   push [place]; push extra; push value; push offset     a sampler::ProbeCall
//   call routine                                          r11: the slab
//
// The routine pops its arguments off the stack. All registers survive except r11 and the flags: it
// saves the general ones, and the functions use no others (sampler/probe_call.h). The stack need
// not be aligned at the call.
#pragma once

#include <cstdint>

namespace uptier::jit {

enum class ProbeRoutine : uint8_t { kTarget, kValue, kLog, kLoopEnter, kLoopLeave, kLoopArrive };
inline constexpr uint32_t kProbeRoutines = 6;

// Returns the number of words that a caller pushes.
constexpr uint32_t probe_words(ProbeRoutine r) { return r == ProbeRoutine::kLog ? 4 : 3; }

}  // namespace uptier::jit
