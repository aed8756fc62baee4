// fuel_operand: the thread's fuel (sampler/fuel.h) as an operand of 8 bytes.
#pragma once

#include "jit/x64/asmjit.h"
#include "sampler/fuel.h"

namespace uptier::jit {

inline Mem fuel_operand() {
  // The displacement is negative and absolute; asmjit takes it as a sign-extended address.
  Mem word = x86::ptr_abs(static_cast<uint64_t>(int64_t{sampler::fuel_tls_offset()}), 8);
  word.setSegment(x86::fs);
  return word;
}

}  // namespace uptier::jit
