// HostStacks: creates, switches to and destroys stacks for the host.
//
//   Thread: the one that owns the stack.
#pragma once

#include <cstddef>

#include "uptier/result.h"
#include "uptier/runtime.h"

namespace uptier::tiering {

class AttachedThread;
struct Engine;

class HostStacks {
 public:
  // `engine` outlives this.
  explicit HostStacks(Engine& engine) : engine_(engine) {}

  // See uptier/runtime.h.
  Result<NativeStack*> create_stack(void* memory, size_t bytes);
  Status switch_stack(NativeStack* to);
  Status destroy_stack(NativeStack* stack);

 private:
  // `frame` is the caller's frame. Registers are saved below it, or above it in the frame of a C
  // function.
  __attribute__((noinline, no_sanitize("address", "thread"))) Status leave_stack(AttachedThread& t,
                                                                                 NativeStack& to,
                                                                                 const void* frame);

  Engine& engine_;
};

}  // namespace uptier::tiering
