// source_lines.h: the source lines of a module's code, from its DWARF sections, or from a source map.
//
// Reading is for people's questions: nothing reads lines before a program has ended or trapped.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embed/dwarf/line_map.h"
#include "embed/wasm/module_bytes.h"

namespace uptier::wasm {

class SourceLines {
 public:
  // Reads a module's debug sections; keeps its bytes. Errors: those of dwarf::LineMap::read; kNotFound names
  // the file that has the sections, if the module does.
  static Result<SourceLines> read(ModuleBytes bytes);

  // Reads a source map of a module, which has places and no functions. `folder` is where the map's sources
  // are, and goes before relative paths. Errors: those of source_map::read_source_map; kCorruptInput for a
  // map of other code.
  static Result<SourceLines> read_map(ModuleBytes bytes, std::string_view json,
                                      const std::string& folder);

  // Returns the place of the instruction at an offset of the module, and after it the calls that it was
  // inlined by, innermost first. Empty if no line is known.
  std::vector<dwarf::SourceFrame> at(uint32_t offset) const;

  // The map of offsets in the code section, and where that begins in the module.
  const dwarf::LineMap& map() const { return map_; }
  uint32_t code_begin() const { return code_begin_; }
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  using Paths = std::shared_ptr<const std::vector<std::string>>;

  SourceLines(ModuleBytes bytes, dwarf::LineMap map, uint32_t code_begin, Paths paths = nullptr)
      : bytes_(std::move(bytes)),
        paths_(std::move(paths)),
        map_(std::move(map)),
        code_begin_(code_begin) {}

  ModuleBytes bytes_;
  Paths paths_;  // of a source map
  dwarf::LineMap map_;
  uint32_t code_begin_;
};

// Returns whether a module has DWARF of its own.
bool has_dwarf(const ModuleBytes& bytes);
// Returns the file name of a module's source map, without folders and queries: it belongs beside the module.
// "" if the module names none.
std::string source_map_name(const ModuleBytes& bytes);

}  // namespace uptier::wasm
