// LineMap: source lines of code, from the DWARF of a file.
//
//   auto map = LineMap::read(sections);
//   for (const SourceFrame& f : map->find(offset)) ...   // innermost first
//
// Memory and work are limited by the size of the sections (budget.h).
// Thread: any, once it is read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embed/dwarf/debug_sections.h"
#include "embed/dwarf/line_table.h"
#include "embed/dwarf/scopes.h"

namespace uptier::dwarf {

// A place in the sources. The function is "" if it is not known.
struct SourceFrame {
  std::string function;
  std::string file;
  uint32_t line = 0;    // 0: the code belongs to no line
  uint32_t column = 0;  // 0: not known

  friend bool operator==(const SourceFrame&, const SourceFrame&) = default;
};

// A place as LLVM's sample profiles name it: by its line within its function.
struct FunctionPlace {
  std::string_view function;   // as linkers know it; "" if it is not known
  uint32_t first_line = 0;     // of the function's declaration; 0: not known
  uint32_t line = 0;           // 0: the code belongs to no line
  uint32_t discriminator = 0;  // which of several blocks of the line, as LLVM encodes it
};

class LineMap {
 public:
  // Reads all units. The sections' bytes must outlive the map. Errors: kCorruptInput (a rule that is broken,
  // with section and offset), kUnsupported (split DWARF, an unknown version), kResourceExhausted (past the
  // limits), kNotFound (there is no DWARF).
  static Result<LineMap> read(const Sections& s);

  // Makes a map without functions of rows and files that were read elsewhere (LineTable::take).
  static LineMap of(Rows rows, std::span<const std::string> paths);

  // Returns the place of an address, and after it the calls that it was inlined by, innermost first. Empty
  // if no line is known.
  std::vector<SourceFrame> find(uint32_t address) const;
  // The same places, in terms of their functions. Names are borrowed from the sections.
  std::vector<FunctionPlace> function_places(uint32_t address) const;
  // Returns the row of an address, or null: the innermost place without its function.
  const Row* row(uint32_t address) const { return lines_.find(address); }
  // All rows.
  const LineTable& lines() const { return lines_; }

 private:
  LineTable lines_;
  Scopes scopes_;
};

}  // namespace uptier::dwarf
