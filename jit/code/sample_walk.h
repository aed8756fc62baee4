// sample_walk: finds where a thread is, from its registers, in a signal handler.
//
//   rsp -> [host] -> [routine] -> [code, code] -> invoke -> [host] -> [code] -> invoke -> [host]
//          scanned               a chain of rbp            scanned    chain of rbp
//
// Host code does not keep a frame pointer, and guest code stores no anchor before it calls host
// code. So the stack is scanned upwards from rsp for the innermost guest frame. A word is its
// return address if
//
//   the word points into a body, just after a call instruction,
//   a chain of frames leads from there to the innermost invoke,
//   each frame of the chain lies exactly where its caller's frame ends (frame sizes are known),
//   and no link of the chain is the return address of a call of host code: frames below such a
//     call have returned.
//
// Two frames that satisfy all four differ only in the callee of one call of their common caller. So
// only one error is left to chance: a call that now runs host code, and earlier ran a method with a
// larger frame.
//
// A chain may also end in host code that has called an entry without an invoke. Nothing
// distinguishes such a chain from one that has returned, so the walk ends there as kUncertain. The
// scan reads words of the thread's own stack between rsp and the stack's end, and nothing else.
//
//   Thread: the owner of the stack, in its signal handler. No allocation, no lock, no libc.
#pragma once

#include <cstdint>

#include "jit/code/code_space.h"
#include "sampler/context.h"
#include "sampler/host_code.h"
#include "sampler/stack_record.h"

namespace uptier::jit {

class Routines;
class StubTable;

struct SampleWalk {
  const CodeSpace& space;
  const StubTable& stubs;
  const Routines& routines;
  const sampler::HostCode& host;
  const sampler::Activation* innermost;  // of the thread, may be null
  uint64_t stack_low, stack_high;        // the bounds of the stack that the thread should be on

  // The most bytes of host frames that are scanned to find one guest frame.
  static constexpr uint64_t kMostScanned = 64 << 10;
};

// Fills in leaf, gap and frames of a record without frames. `machine`: the handler's third
// argument.
void walk_sample(const SampleWalk& walk, void* machine, sampler::StackRecord& out) noexcept;

}  // namespace uptier::jit
