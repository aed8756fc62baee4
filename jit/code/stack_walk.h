// stack_walk: which bodies the calling thread is in, innermost first.
//
//   walk_stack -> [library, host] -> [code, code, routine] -> [host] -> [code] -> ... -> outermost
//                  unwound by .eh_frame   a chain of rbp       .eh_frame
//
// The law: where compiled code calls, [rbp] is its caller's rbp and [rbp + 8] its return address,
// whichever compiler made it; and so it is in the routines (invoke, entry_slow, trial), except
// those of exits and loops, which run on their caller's frame. Host frames promise nothing of rbp,
// but whatever a compiler made has unwind tables, which give back rsp and rbp after each frame. So
// stretches of the two kinds are walked by turns. An address tells which kind it is of: code and
// routines lie in code spaces (code_registry.h).
//
// A host frame without tables ends its stretch; the walk goes on after the next invoke further out,
// which the thread's Activations know.
//
// A frame whose exit has gone on to the host's interpreter (host_resume) still stands, and its
// innermost body is the host's now: HostExit says so.
//
//   Thread: the one whose stack it is. The code there is kept by being there. No allocation, no
//   lock of ours; not async-signal-safe, since the unwinder may ask the loader.
#pragma once

#include <cstdint>

#include "jit/code/code_space.h"
#include "jit/code/leave.h"
#include "sampler/context.h"
#include "uptier/ids.h"

namespace uptier::jit {

// One host_resume under way. Made by the function that `Leaving::leave` is, on its stack.
struct HostExit {
  const HostExit* outer;
  const LeaveState* state;
};

struct StackWalk {
  // Returns whether it wants another.
  using Visit = bool (*)(MethodId method, uint32_t location, void* to);

  const CodeSpace& space;                // whose bodies are told of
  const sampler::Activation* innermost;  // of the thread, may be null
  const HostExit* exits;                 // of the thread, innermost first, may be null
  // Whether there is nothing to find after the outermost of the Activations.
  bool ends_there;
  Visit visit;
  void* to;
};

void walk_stack(const StackWalk& walk) noexcept;

}  // namespace uptier::jit
