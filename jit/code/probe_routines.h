// Probe routines: compiled code -> a C function that observes for it, with every register kept.
//
//   push [place]; push extra; push value; push offset     a sampler::ProbeCall
//   call routine                                          r11: the slab
//
// The routine takes its arguments off the stack. All registers but r11 and the flags survive: it
// saves the general ones, and the functions touch no others (sampler/probe_call.h). The stack needs
// no alignment at the call.
#pragma once

#include <cstdint>

namespace uptier::jit {

enum class ProbeRoutine : uint8_t { kTarget, kValue, kLog, kLoopEnter, kLoopLeave, kLoopArrive };
inline constexpr uint32_t kProbeRoutines = 6;

// Returns the words that a caller pushes.
constexpr uint32_t probe_words(ProbeRoutine r) { return r == ProbeRoutine::kLog ? 4 : 3; }

}  // namespace uptier::jit
