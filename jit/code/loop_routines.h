// Loop routines: called by the slow sides of loop headers' checks, const void*(method, loop, ...);
// the check jumps to the address they return. The most common answers are found here, without C++.
// For the others the routine jumps on to the C function, with the arguments unchanged.
//
//   plain:         countdown < 0: another frame has begun a burst, this one joins it
//                  countdown = 0: FastSampling::begin_burst
//   instrumented:  countdown > 0: a sampled call in the middle of a stretch goes to the plain copy
//                  countdown = 0: the burst is over, and the stretch after it was drawn when the burst
//                                 began (sampler::end_burst)
//
// All values lie in the frame at a header, so only callee-saved registers have to be kept. The C
// function is always asked for a thread of another runtime or of none, and for a method without
// cells in service.
#pragma once

#include <cstdint>

#include "sampler/context.h"

namespace uptier::jit {

// Returns where a frame continues: called with method, loop, frame and runtime, as the loop helpers
// are.
using LoopSlow = const void* (*)(uint32_t method, uint32_t loop, void* frame, void* runtime);
using LoopBegin = const void* (*)(uint32_t method, uint32_t loop, sampler::ThreadContext* context,
                                  const void* data);

struct LoopRoutines {
  LoopSlow plain = nullptr;  // null: no routines
  LoopSlow instrumented = nullptr;
  const void* runtime = nullptr;  // of the threads for which the routines may answer
  const void* methods = nullptr;  // sampler::FastSampling::methods
  LoopBegin begin = nullptr;      // returns null to leave the answer to the C function
  const void* data = nullptr;     // passed to `begin`
};

}  // namespace uptier::jit
