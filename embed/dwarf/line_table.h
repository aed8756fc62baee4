// LineTable: the rows of all line programs, by address.
//
// If sequences overlap, only the first is kept.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embed/dwarf/budget.h"
#include "embed/dwarf/debug_sections.h"
#include "embed/dwarf/line_program.h"

namespace uptier::dwarf {

class LineTable {
 public:
  // Reads the program at an offset of .debug_line, unless it was read before. Paths are relative to
  // `comp_dir` of the unit. Errors: kCorruptInput, kUnsupported, kResourceExhausted.
  Status read(const Sections& s, uint64_t at, std::string_view comp_dir, Budget& budget);
  // Reads all programs, one after the other: for files without .debug_info.
  Status read_all(const Sections& s, Budget& budget);
  // Takes rows that were read elsewhere; their files are numbers in `paths`, which are borrowed. Takes
  // kFileBytes for each file.
  static constexpr uint64_t kFileBytes = 48;
  void take(Rows rows, std::span<const std::string> paths);
  // Sorts the sequences. Nothing is found before.
  void finish();

  // Returns the row of the code at an address, or null.
  const Row* find(uint32_t address) const;
  // Calls `visit(row, end)` with each row that has code, and with the end of its code.
  template <typename Visit>
  void each_row(Visit visit) const {
    for (const Sequence& q : rows_.sequences) {
      for (uint32_t i = q.first; i < q.last; ++i) {
        const uint32_t end = i + 1 < q.last ? rows_.rows[i + 1].address : q.end;
        if (rows_.rows[i].address < end) visit(rows_.rows[i], end);
      }
    }
  }

  // Returns how the program at an offset numbers its files.
  FileNumbers files_of(uint64_t program) const;
  // Returns the path of a file, "" for kNoFile.
  std::string path(uint32_t file) const;
  size_t rows() const { return rows_.rows.size(); }

 private:
  struct File {
    std::string_view comp_dir, folder, name;
  };
  static_assert(sizeof(File) == kFileBytes);

  // Reads a program. Returns where it ends.
  Result<uint64_t> add(const Sections& s, uint64_t at, std::string_view comp_dir, Budget& budget);

  std::map<uint64_t, FileNumbers> programs_;  // by offset
  std::vector<File> files_;
  Rows rows_;  // sequences by address, once finished
};

}  // namespace uptier::dwarf
