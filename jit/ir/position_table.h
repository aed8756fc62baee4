// PositionTable: the file table of a body, and the positions of its locations.
//
// Law: after finish(), rows are sorted by location, each location has one row, and each inlined_at
// leads to a row, without a cycle. A table without rows takes no memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "uptier/positions.h"
#include "uptier/result.h"

namespace uptier::jit {

class PositionTable {
 public:
  // Returns the number of a file; the same for the same path.
  FileId add_file(std::string_view path);
  bool has(FileId file) const { return file.index() < files_.size(); }
  void add(uint32_t location, const Position& at);
  // Call it once, after the last row. Error: the rule that is broken, with the location.
  Status finish();

  bool empty() const { return rows_.empty(); }
  // Returns the position of a location, as SourcePositions; empty if it has none.
  SourcePositions find(uint32_t location) const;
  size_t rows() const { return rows_.size(); }
  // Returns the memory that it takes, in bytes.
  size_t bytes() const;

 private:
  // Calls that a host's own compiler has inlined into one another.
  static constexpr size_t kMostDepth = 256;
  struct Row {
    uint32_t location = 0;
    Position at;
  };
  const Row* row(uint32_t location) const;
  Status check_calls(const Row& from) const;

  std::vector<std::string> files_;
  std::vector<Row> rows_;
};

}  // namespace uptier::jit
