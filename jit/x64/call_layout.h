// call_layout: the places of arguments in the System V calling convention.
//
// Integers and refs fill rdi rsi rdx rcx r8 r9, floats xmm0-7, each class on its own; the rest goes
// to the stack in order, 8 bytes each, the first at the lowest address ([rsp] before the call).
#pragma once

#include <cstdint>

#include "jit/x64/asmjit.h"
#include "uptier/builder.h"
#include "uptier/ids.h"

namespace uptier::jit {

inline constexpr uint8_t kGpArgs[] = {Gp::kIdDi, Gp::kIdSi, Gp::kIdDx,
                                      Gp::kIdCx, Gp::kIdR8, Gp::kIdR9};
inline constexpr unsigned kGpArgCount = 6;
inline constexpr unsigned kXmmArgCount = 8;

struct ArgPlace {
  enum class Kind : uint8_t { kGp, kXmm, kStack };
  Kind kind;
  uint32_t index;  // index in the class: kGpArgs[index], xmm<index>, or stack word <index>
};

// Assigns places in argument order.
class ArgCursor {
 public:
  ArgPlace next(Type t) {
    if (is_float(t)) {
      if (xmm_ < kXmmArgCount) return {ArgPlace::Kind::kXmm, xmm_++};
    } else if (gp_ < kGpArgCount) {
      return {ArgPlace::Kind::kGp, gp_++};
    }
    return {ArgPlace::Kind::kStack, stack_++};
  }
  // Returns the number of stack words assigned so far.
  uint32_t stack_words() const { return stack_; }

 private:
  uint32_t gp_ = 0, xmm_ = 0, stack_ = 0;
};

inline uint32_t stack_words(const Signature& s) {
  ArgCursor c;
  for (Type t : s.params) c.next(t);
  return c.stack_words();
}

}  // namespace uptier::jit
