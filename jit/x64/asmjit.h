// asmjit.h: the names of asmjit that the compilers use. Only this header and code_buffer.cc depend
// on its version.
//
// Only the encoder is used: x86::Assembler over a CodeHolder, both inside CodeBuffer. Files in jit/
// include this header, never asmjit's own.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>

// asmjit 1.18 renamed its interface (snake_case, another Error type). The names below are those of
// 1.9 and later.
#if ASMJIT_LIBRARY_VERSION < 0x010900 || ASMJIT_LIBRARY_VERSION >= 0x011200
#error "this asmjit has another interface; jit/x64/asmjit.h and code_buffer.cc must learn it"
#endif

namespace uptier::jit {

namespace x86 = asmjit::x86;
using Label = asmjit::Label;
using Assembler = x86::Assembler;
using Gp = x86::Gp;
using Xmm = x86::Xmm;
using Mem = x86::Mem;
using asmjit::imm;

// Views of a general purpose register by width: 64 bits if `wide`, else 32.
inline Gp gp(uint32_t id, bool wide) {
  if (wide) return x86::gpq(id);
  return x86::gpd(id);
}
inline Gp gp(const Gp& r, bool wide) { return gp(r.id(), wide); }

}  // namespace uptier::jit
