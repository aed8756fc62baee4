// is_call: the opcodes that are call sites: of a method, of a pointer, of the host. A table, since
// walks over a body test every instruction.
#pragma once

#include <array>

#include "uptier/opcodes.h"

namespace uptier::jit {

inline constexpr auto kCallSites = [] {
  std::array<bool, kOpcodeCount> calls = {};
  for (size_t op = 0; op < kOpcodeCount; ++op) {
    Shape s = kOpcodeTable[op].shape;
    calls[op] = s == Shape::kCall || s == Shape::kCallIndirect || s == Shape::kCallHost;
  }
  return calls;
}();

inline bool is_call(Opcode op) { return kCallSites[static_cast<size_t>(op)]; }

}  // namespace uptier::jit
