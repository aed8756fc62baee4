// sample_walk: where a thread is, from its registers, in a signal handler.
//
//   rsp -> [host] -> [routine] -> [code, code] -> invoke -> [host] -> [code] -> invoke -> [host]
//          scanned               a chain of rbp            scanned    chain of rbp
//
// Host code promises nothing of rbp, and no anchor is stored where guest code calls it. So the stack is scanned
// from rsp upwards for the innermost guest frame: a word is its return address if
//
//   it lies in a body, behind a call instruction,
//   the frame pointer that the body must have there begins a chain that leads to the innermost invoke, or,
//     if the body is in a call of a host function, to host code that called an entry by itself, and
//   no link of that chain is the return address of a call that provably went to host code: what lies
//   below such a frame is host code, so the frame that was found is a stale one.
//
// What is left of chance: a stale frame whose caller is in an indirect call that has gone to a host
// function now. It reads words of the thread's own stack between rsp and the stack's end, and no others.
//
//   Thread: the one whose stack it is, in its signal handler. No allocation, no lock, no libc.
#pragma once

#include <cstdint>

#include "jit/code/code_space.h"
#include "sampler/context.h"
#include "sampler/host_code.h"
#include "sampler/stack_record.h"

namespace uptier::jit {

class StubTable;

struct SampleWalk {
  const CodeSpace& space;
  const StubTable& stubs;
  const sampler::HostCode& host;
  const sampler::Activation* innermost;  // of the thread, may be null
  uint64_t stack_low, stack_high;        // of the stack that the thread should be on

  // Bytes of host frames that are scanned for one guest frame, at most.
  static constexpr uint64_t kMostScanned = 64 << 10;
};

// Fills in leaf, gap and frames of a record that has none. `machine`: the handler's third argument.
void walk_sample(const SampleWalk& walk, void* machine, sampler::StackRecord& out) noexcept;

}  // namespace uptier::jit
