// info_reader.h: reads the units of .debug_info: their line programs, subprograms and inlined calls.
#pragma once

#include "embed/dwarf/budget.h"
#include "embed/dwarf/debug_sections.h"
#include "embed/dwarf/line_table.h"
#include "embed/dwarf/scopes.h"

namespace uptier::dwarf {

// Adds all units to `lines` and `scopes`. Each entry is read once, in order; nothing recurses. Errors:
// kCorruptInput, kUnsupported, kResourceExhausted.
Status read_info(const Sections& s, LineTable& lines, Scopes& scopes, Budget& budget);

}  // namespace uptier::dwarf
