// gdb_image: an object file in memory that says what lies where in the code space, for gdb.
//
// A symbol for each body, and call frame information, so that backtraces pass through compiled code
// and `up` finds the registers it has saved. Of a body that has frame rows each instruction is told;
// in others rbp is the frame except the two instructions of the prologue that make it, and the last
// two of the epilogue, which are left out.
#pragma once

#include <span>
#include <vector>

#include "jit/code/named_code.h"

namespace uptier::jit {

inline constexpr size_t kMostGdbCodes = 1 << 15;  // ELF counts sections with 16 bits

// Returns an ELF file (x86-64, relocatable) without code: a section stands for each of `codes`, of
// which there are kMostGdbCodes at most.
std::vector<uint8_t> gdb_image(std::span<const NamedCode> codes);

}  // namespace uptier::jit
