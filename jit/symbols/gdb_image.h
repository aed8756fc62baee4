// gdb_image: an object file in memory that describes the contents of the code space, for gdb.
//
// It has a symbol for each body, and call frame information, so that backtraces pass through
// compiled code and `up` finds the registers that it has saved. For a body with frame rows, every
// instruction is described. Bodies with lines have them as DWARF (gdb_lines.h). For others rbp is the frame, except in the two instructions of the
// prologue that make it; the last two instructions of the epilogue are not described.
#pragma once

#include <span>
#include <vector>

#include "jit/code/named_code.h"

namespace uptier::jit {

inline constexpr size_t kMostGdbCodes = 1 << 15;  // ELF counts sections with 16 bits

// Returns an ELF file (x86-64, relocatable) without code: it has a section for each of `codes`, at
// most kMostGdbCodes.
std::vector<uint8_t> gdb_image(std::span<const NamedCode> codes);

}  // namespace uptier::jit
