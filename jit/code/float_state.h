// float_state: the floating-point environment in which guest code and the library itself compute.
//
// The law: no result depends on the environment that the host has set. `invoke` (routines.h) sets
// the environment for guest code. Where the library computes on a host thread, and bakes the result
// into code or compares it with a guest's result, it uses StandardFloats. A new thread inherits the
// environment of its creator.
#pragma once

#include <xmmintrin.h>

#include <cstdint>

namespace uptier::jit {

// MXCSR at the start of a process: rounds to nearest, keeps denormals, masks all exceptions.
inline constexpr uint32_t kStandardMxcsr = 0x1f80;
// Flags of masked exceptions; they change no result.
inline constexpr uint32_t kMxcsrFlags = 0x3f;

// Makes the thread compute in the standard environment for a scope. Cost: a store and a load of
// MXCSR if the thread already has it.
class StandardFloats {
 public:
  StandardFloats() noexcept : before_(_mm_getcsr()) {
    if (differs()) _mm_setcsr(kStandardMxcsr);
  }
  ~StandardFloats() {
    if (differs()) _mm_setcsr(before_);
  }
  StandardFloats(const StandardFloats&) = delete;
  StandardFloats& operator=(const StandardFloats&) = delete;

 private:
  bool differs() const { return (before_ & ~kMxcsrFlags) != kStandardMxcsr; }

  const uint32_t before_;
};

}  // namespace uptier::jit
