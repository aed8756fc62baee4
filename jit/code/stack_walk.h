// stack_walk: visits the bodies that the calling thread is in, innermost first.
//
//   walk_stack -> [library, host] -> [code, code, routine] -> [host] -> [code] -> ... -> outermost
//                  unwound by .eh_frame   a chain of rbp       .eh_frame
//
// The law: where compiled code calls, [rbp] is its caller's rbp and [rbp + 8] its return address,
// whichever compiler made it. The same holds for the routines (invoke, entry_slow, trial), except
// those of exits and loops, which run on their caller's frame. Host frames promise nothing about
// rbp, but compilers emit unwind tables, which restore rsp and rbp after each frame. So the walk
// alternates between stretches of the two kinds. An address tells the kind: code and routines lie
// in code spaces (code_registry.h).
//
// A host frame without tables ends its stretch; the walk continues after the next invoke further
// out, which the thread's Activations know.
//
// A frame whose exit continues in the host's interpreter (host_resume) is still on the stack, but
// the host now runs its innermost body: HostExit says so.
//
//   Thread: the owner of the stack. Code on the stack is kept alive by being there. No allocation, no
//   lock of ours; not async-signal-safe, since the unwinder may call the loader.
#pragma once

#include <cstdint>

#include "jit/code/code_space.h"
#include "jit/code/leave.h"
#include "sampler/context.h"
#include "uptier/ids.h"

namespace uptier::jit {

// One host_resume under way. The function in `Leaving::leave` keeps it on its stack.
struct HostExit {
  const HostExit* outer;
  const LeaveState* state;
};

struct StackWalk {
  // Visits a frame; returns whether the walk should continue.
  using Visit = bool (*)(MethodId method, uint32_t location, void* to);

  const CodeSpace& space;                // the space whose bodies are visited
  const sampler::Activation* innermost;  // of the thread, may be null
  const HostExit* exits;                 // of the thread, innermost first, may be null
  // True if there are no frames of ours beyond the outermost of the Activations.
  bool ends_there;
  Visit visit;
  void* to;
};

void walk_stack(const StackWalk& walk) noexcept;

}  // namespace uptier::jit
