// positions.h: where a location lies in the sources.
//
// A location is a number of the host's own, such as a bytecode offset (FunctionBuilder::set_location).
// Its position is what people want to see: file, line, column. A host gives positions in one of two
// ways, or not at all:
//
//   - the file table of a body: FunctionBuilder::add_file and add_position, while it is described
//   - Host::positions: the host looks a location up when somebody asks, never before
//
// A location that the table has is not asked of the host. A location without a position stays
// without one: nothing is taken from its neighbours. Runtime::positions gives both kinds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "uptier/ids.h"

namespace uptier {

// A file of one body: FunctionBuilder::add_file.
using FileId = Id<struct FileTag>;

// The position of a location, in the file table of a body.
struct Position {
  static constexpr uint32_t kNotInlined = UINT32_MAX;

  FileId file;
  uint32_t line = 0;    // from 1; 0: not known
  uint32_t column = 0;  // from 1; 0: not known
  // If the host's own compiler has inlined the code there: the location of the call, which has a
  // position of its own. Calls that the library inlines are not described: it knows them.
  uint32_t inlined_at = kNotInlined;

  friend bool operator==(const Position&, const Position&) = default;
};

// A position as it is given to people. Plain data.
struct SourcePosition {
  std::string file;     // as the host has written it
  uint32_t line = 0;    // from 1; 0: not known
  uint32_t column = 0;  // from 1; 0: not known
  // The function of the sources that the host's own compiler has inlined; empty if it is not known,
  // or is the method itself.
  std::string function;

  friend bool operator==(const SourcePosition&, const SourcePosition&) = default;
};

// Returns "fib.calc:4" or "fib.c:4:12"; only the file if no line is known.
inline std::string position_text(const SourcePosition& p) {
  if (p.line == 0) return p.file;
  const std::string text = p.file + ":" + std::to_string(p.line);
  return p.column == 0 ? text : text + ":" + std::to_string(p.column);
}

// A position, and after it the calls by which the host's own compiler has inlined it, innermost
// first; empty if nothing is known.
using SourcePositions = std::vector<SourcePosition>;

}  // namespace uptier
