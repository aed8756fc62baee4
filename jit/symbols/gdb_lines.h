// gdb_lines: the DWARF sections that tell a debugger the source lines of compiled code.
//
// Each body with lines is a compilation unit of its own (DWARF 4): a subprogram with the body's
// name, an inlined subroutine for each call that was inlined, and a line program. Addresses are
// absolute, so there is nothing to relocate.
#pragma once

#include <span>

#include "jit/code/named_code.h"
#include "jit/symbols/object_bytes.h"

namespace uptier::jit {

struct GdbLines {
  ObjectBytes abbrev, info, line, ranges;

  bool empty() const { return info.size() == 0; }
};

// Returns the sections for those of `codes` that have lines; empty if none has.
GdbLines gdb_lines(std::span<const NamedCode> codes);

}  // namespace uptier::jit
