// source_lines.h: the source lines of a module's code, from its DWARF sections.
//
// Reading is for people's questions: nothing reads lines before a program has ended or trapped.
#pragma once

#include <cstdint>
#include <vector>

#include "embed/dwarf/line_map.h"
#include "embed/wasm/module_bytes.h"

namespace uptier::wasm {

class SourceLines {
 public:
  // Reads a module's debug sections; keeps its bytes. Errors: those of dwarf::LineMap::read; kNotFound names
  // the file that has the sections, if the module does.
  static Result<SourceLines> read(ModuleBytes bytes);

  // Returns the place of the instruction at an offset of the module, and after it the calls that it was
  // inlined by, innermost first. Empty if no line is known.
  std::vector<dwarf::SourceFrame> at(uint32_t offset) const;

  // The map of offsets in the code section, and where that begins in the module.
  const dwarf::LineMap& map() const { return map_; }
  uint32_t code_begin() const { return code_begin_; }

 private:
  SourceLines(ModuleBytes bytes, dwarf::LineMap map, uint32_t code_begin)
      : bytes_(std::move(bytes)), map_(std::move(map)), code_begin_(code_begin) {}

  ModuleBytes bytes_;
  dwarf::LineMap map_;
  uint32_t code_begin_;
};

}  // namespace uptier::wasm
