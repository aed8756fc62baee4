// line_program.h: runs a line program.
#pragma once

#include <cstdint>
#include <vector>

#include "embed/dwarf/budget.h"
#include "embed/dwarf/debug_sections.h"
#include "embed/dwarf/line_header.h"

namespace uptier::dwarf {

constexpr uint32_t kNoFile = UINT32_MAX;

// A row holds from its address up to the next row's. Line 0: the code belongs to no line.
struct Row {
  uint32_t address = 0;
  uint32_t file = kNoFile;
  uint32_t line = 0;
  uint16_t column = 0;  // 0: not known; at most 65535
  bool is_stmt = false;
  uint32_t discriminator = 0;  // which of several blocks of the line, as the compiler encodes it
};

// A stretch of code whose rows ascend.
struct Sequence {
  uint32_t begin = 0, end = 0;
  uint32_t first = 0, last = 0;  // its rows
};

struct Rows {
  std::vector<Row> rows;
  std::vector<Sequence> sequences;
};

// The files of one program among those of all: from `first` on, `count` of them.
struct FileNumbers {
  uint32_t first = 0;
  uint32_t count = 0;
  bool from_zero = false;

  // Returns the number of a file by its number in the program, kNoFile if it has none.
  uint32_t of(uint64_t index) const {
    const uint64_t at = from_zero ? index : index - 1;
    return at < count ? first + static_cast<uint32_t>(at) : kNoFile;
  }
};

// Appends the rows of a program, and its sequences. Sequences outside of the code are left out: the linker
// removed their functions. Errors: kCorruptInput, kResourceExhausted.
Status run_line_program(const LineHeader& header, const FileNumbers& files, const Sections& s,
                        Rows& out, Budget& budget);

}  // namespace uptier::dwarf
