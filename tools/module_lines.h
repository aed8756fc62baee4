// ModuleLines: which source lines the blocks of a module's functions have.
//
// The lines are read from the module that a profile is of, never from the profile. A block of the IR is
// divided where the row of the line table changes. Operations are those of the IR, without probes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "embed/wasm/source_lines.h"
#include "tools/body_graph.h"
#include "tools/compile_world.h"

namespace uptier::tools {

// Operations of one block that belong to one row.
struct LinePart {
  uint32_t block = 0;   // its site, from 1
  uint32_t offset = 0;  // of the first one, in the module: SourceLines::at
  uint32_t operations = 0;
};

// A row that has a line, and the end of its code; addresses in the code section.
struct LinedRow {
  const dwarf::Row* row = nullptr;
  uint32_t end = 0;
};

class ModuleLines {
 public:
  // Reads a module and its DWARF. Errors: those of read_functions and SourceLines::read, with the name of
  // the file.
  static Result<std::unique_ptr<ModuleLines>> open(const std::string& path);
  // The same of bytes that were read before. `covers` as in read_functions.
  static Result<std::unique_ptr<ModuleLines>> read(const std::string& path,
                                                   std::vector<uint8_t> bytes, bool covers = false);

  const std::vector<BodyGraph>& bodies() const { return bodies_; }
  const wasm::SourceLines& source() const { return source_; }
  // Returns the parts of a function's blocks that have a line, by block and in the order of code.
  const std::vector<LinePart>& parts(uint32_t function) const { return parts_[function]; }
  // Returns the same of lines that have code without an operation, such as `local.get`: a part belongs to
  // the block that the code continues in. Lines of unreachable code have none.
  const std::vector<LinePart>& quiet_parts(uint32_t function) const { return quiet_[function]; }
  // Returns where a function's code lies in the module.
  uint32_t begin_of(uint32_t function) const { return begins_[function]; }
  uint32_t end_of(uint32_t function) const { return begins_[function] + sizes_[function]; }
  // Returns the offset of its first code that has a line, its end if there is none. Compilers leave out the
  // declarations of locals.
  uint32_t first_of(uint32_t function) const;
  // Returns the rows of its code that have a line, by address.
  std::span<const LinedRow> rows_of(uint32_t function) const;
  // Returns the place of the function itself, empty if it has no line.
  std::vector<dwarf::SourceFrame> place_of(uint32_t function) const;
  // Returns the function with this key, or -1.
  int64_t find(const MethodKey& key) const;

 private:
  ModuleLines(const Functions& functions, wasm::SourceLines source);

  std::vector<BodyGraph> bodies_;
  std::vector<uint32_t> begins_, sizes_;
  std::vector<std::vector<LinePart>> parts_, quiet_;
  wasm::SourceLines source_;
  std::vector<LinedRow> rows_;  // by address
};

// Reads the lines of a module: its DWARF, or the source map that it names, which lies beside it. Errors: those
// of SourceLines, without the name of the module; kNotFound if it has neither.
Result<wasm::SourceLines> read_source_lines(const std::string& path, wasm::ModuleBytes bytes);

// Returns "FILE: its code has no lines: ..." for a module without them, or the error as it is.
Error lines_error(const std::string& path, const Error& why);

}  // namespace uptier::tools
