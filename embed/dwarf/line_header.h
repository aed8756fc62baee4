// line_header.h: the header of a line program: its files, and how its opcodes are to be read.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "embed/dwarf/budget.h"
#include "embed/dwarf/debug_sections.h"
#include "embed/dwarf/unit.h"

namespace uptier::dwarf {

struct LineHeader {
  struct File {
    std::string_view folder;
    std::string_view name;
    bool in_unit = true;  // the folder is relative to the unit's folder
  };

  Encoding encoding;
  uint64_t at = 0;       // in .debug_line
  uint64_t program = 0;  // its first opcode
  uint64_t end = 0;
  uint8_t min_length = 1;
  bool default_is_stmt = true;
  int8_t line_base = 0;
  uint8_t line_range = 1;
  uint8_t opcode_base = 1;
  std::array<uint8_t, 256> operands = {};  // number of operands of standard opcodes
  std::vector<File> files;
  bool from_zero = false;  // how opcodes count files
};

// Reads the header at an offset of .debug_line. Errors: kCorruptInput, kUnsupported (a version, several
// operations an instruction), kResourceExhausted.
Result<LineHeader> read_line_header(const Sections& s, uint64_t at, Budget& budget);

}  // namespace uptier::dwarf
