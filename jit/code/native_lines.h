// NativeLines: the source lines of one compiled body, as native tools (perf, gdb) see them.
//
// A row holds from its offset up to the next one. A line is that of the innermost body; `bodies` has
// the calls that the optimizing compiler has inlined.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "uptier/ids.h"
#include "uptier/positions.h"

namespace uptier::jit {

class Code;

// What a Code does not know: the names and sources of methods.
class PositionSource {
 public:
  virtual ~PositionSource() = default;
  virtual SourcePositions positions(MethodId m, uint32_t location) = 0;
  virtual std::string name(MethodId m) = 0;
};

struct NativeLines {
  struct Place {
    uint32_t file = 0;  // in `files`
    uint32_t line = 0;  // 0: not known
    uint32_t column = 0;

    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Row {
    uint32_t offset = 0;
    Place at;
    uint32_t body = 0;  // 0: the method's own; k: bodies[k - 1]
  };
  struct Body {
    std::string name;
    uint32_t parent = 0;  // likewise
    Place call;
  };
  std::vector<std::string> files;
  std::vector<Row> rows;  // sorted by offset; empty: no line is known
  std::vector<Body> bodies;
  uint32_t end = 0;  // where the last row ends

  bool empty() const { return rows.empty(); }
};

// Returns the lines of all of a body's code; empty if no location has a position. Offsets are those
// of Code::at.
NativeLines native_lines(const Code& code, PositionSource& source);
// Returns the lines of its part [begin, end), with offsets from `begin`.
NativeLines part_of(const NativeLines& all, uint32_t begin, uint32_t end);

}  // namespace uptier::jit
