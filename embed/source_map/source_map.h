// source_map.h: reads a source map: version 3, of a WebAssembly module; or an index map, which has a map for
// each part of the module.
//
// Mappings are of one line, since a module is one "line" of bytes; a column is an offset in the module. Each
// mapping holds up to the next one, or the end of its function. Lines and columns count from 0 there, and
// from 1 here.
// Source: https://tc39.es/ecma426/ and the WebAssembly tool conventions, Debugging.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "embed/dwarf/budget.h"
#include "embed/dwarf/line_program.h"
#include "uptier/result.h"

namespace uptier::source_map {

struct SourceMap {
  std::vector<std::string> sources;  // after the root of their map
  std::vector<dwarf::Row> rows;  // by address, which is the offset in the module; files are sources
};

// Reads a map. `budget` is for the bytes of the text. Errors: kCorruptInput (a rule that is broken, and where),
// kUnsupported (another version), kResourceExhausted.
Result<SourceMap> read_source_map(std::string_view json, dwarf::Budget& budget);

// Returns a path after the folder that it needs, if it needs one. Takes memory for both texts and a '/'.
std::string path_after(std::string_view folder, std::string_view path);

}  // namespace uptier::source_map
