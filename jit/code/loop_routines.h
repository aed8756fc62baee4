// Loop routines: what the slow sides of loop headers' checks call, const void*(method, loop, ...),
// and jump to what it returns. The commonest answers are found here, without C++; for the others a
// routine jumps on to the C function, with the arguments as they came.
//
//   plain:         countdown < 0: another frame has begun a burst, this one joins it
//                  countdown = 0: FastSampling::begin_burst
//   instrumented:  countdown > 0: a sampled call in the middle of a stretch goes to the plain copy
//                  countdown = 0: the burst is over, and what follows was drawn when it began
//                                 (sampler::end_burst)
//
// All values lie in the frame at a header, so only callee-saved registers have to be kept. A thread
// of another runtime, or of none, and a method without cells in service always ask.
#pragma once

#include <cstdint>

#include "sampler/context.h"

namespace uptier::jit {

// Where a frame goes on: called with method, loop, frame and runtime, as the loop helpers are.
using LoopSlow = const void* (*)(uint32_t method, uint32_t loop, void* frame, void* runtime);
using LoopBegin = const void* (*)(uint32_t method, uint32_t loop, sampler::ThreadContext* context,
                                  const void* data);

struct LoopRoutines {
  LoopSlow plain = nullptr;  // null: no routines
  LoopSlow instrumented = nullptr;
  const void* runtime = nullptr;  // of the threads that need not ask
  const void* methods = nullptr;  // sampler::FastSampling::methods
  LoopBegin begin = nullptr;      // null result: asks
  const void* data = nullptr;     // passed to it
};

}  // namespace uptier::jit
