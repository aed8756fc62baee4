// float_state: the floating-point environment that guest code, and the library itself, compute in.
//
// The law: what is computed does not depend on what the host has set. `invoke` (routines.h) sets the
// environment for guest code; what the library computes on a thread of the host's, and bakes into code
// or compares with what the guest does, stands behind StandardFloats. A new thread has that of its
// maker.
#pragma once

#include <xmmintrin.h>

#include <cstdint>

namespace uptier::jit {

// MXCSR as a process begins with it: rounds to nearest, keeps denormals, masks all exceptions.
inline constexpr uint32_t kStandardMxcsr = 0x1f80;
// Exceptions that were raised and masked; they change no result.
inline constexpr uint32_t kMxcsrFlags = 0x3f;

// Has the thread compute in the standard environment for a scope. Cost: a store and a load of MXCSR
// where it does already.
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
