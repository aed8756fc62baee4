// Invoker: calls compiled code from C++, and handles the traps that end it.
//
//   Thread: any attached thread.
#pragma once

#include <span>

#include "tiering/model/thread_stop.h"
#include "uptier/runtime.h"

namespace uptier::tiering {

class AttachedThread;
struct Engine;
class GuestWaits;

class Invoker {
 public:
  // All outlive this.
  Invoker(Engine& engine, GuestWaits& guest_waits) : engine_(engine), guest_waits_(guest_waits) {}

  // Calls code from an attached thread.
  Outcome call(const void* target, const Signature& signature, std::span<const uint64_t> args,
               CallLimits limits = {});
  // See Runtime::invoke.
  Outcome invoke(MethodId m, std::span<const uint64_t> args, const InvokeLimits& limits);

 private:
  Engine& engine_;
  GuestWaits& guest_waits_;
};

}  // namespace uptier::tiering
