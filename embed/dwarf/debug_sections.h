// sections.h: the input of the reader, and the errors it gives.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "uptier/result.h"

namespace uptier::dwarf {

// The sections of one file; empty where it has none. Bytes must outlive everything read from them.
struct Sections {
  std::span<const uint8_t> info, abbrev, line, str, line_str, str_offsets, addr, ranges, rnglists;
  // Code lies in [1, code_end). Linkers leave sequences of removed functions at 0 or past the end.
  uint64_t code_end = UINT32_MAX;

  uint64_t size() const {
    return info.size() + abbrev.size() + line.size() + str.size() + line_str.size() +
           str_offsets.size() + addr.size() + ranges.size() + rnglists.size();
  }
};

// Returns an error about the byte at `at` of a section: ".debug_line at 0x12: the rule".
Error broken(std::string_view section, uint64_t at, std::string_view rule);
// Returns an error for a budget that is spent.
Error too_large();

}  // namespace uptier::dwarf
