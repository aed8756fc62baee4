// unit.h: one unit of .debug_info, and the forms in which its attributes are written.
#pragma once

#include <cstdint>
#include <string_view>

#include "embed/dwarf/cursor.h"
#include "embed/dwarf/debug_sections.h"

namespace uptier::dwarf {

// The sizes that forms depend on.
struct Encoding {
  uint16_t version = 4;
  uint8_t address_size = 4;
  uint8_t offset_size = 4;  // 8 in the 64-bit format
};

struct Unit {
  Encoding encoding;
  uint64_t begin = 0;  // of the header, in .debug_info
  uint64_t first = 0;  // of the first entry
  uint64_t end = 0;
  uint64_t abbrevs = 0;  // in .debug_abbrev
  uint8_t type = 1;
  // From the unit's own entry:
  uint64_t low_pc = 0;
  uint64_t str_offsets_base = 0, addr_base = 0, rnglists_base = 0;
  std::string_view comp_dir;
};

// The value of an attribute, as far as the reader uses it.
struct Value {
  enum Kind : uint8_t {
    kNone,
    kNumber,
    kAddress,
    kAddressIndex,
    kOffset,  // into another section
    kListIndex,
    kReference,  // an entry, by its place in .debug_info
    kText,
    kStr,  // text, by its offset in .debug_str
    kLineStr,
    kTextIndex,
  };
  Kind kind = kNone;
  uint64_t number = 0;
  std::string_view text;
};

// Reads the length and the offset size of a unit or table: moves past the length, and returns where the unit ends.
// The cursor is bad if that is past its own end.
uint64_t read_length(Cursor& c, uint8_t& offset_size);

// Returns the error for a unit whose entries are in another file.
Error split_error(uint64_t at);

// Reads the header of the unit at an offset of .debug_info. Errors: kCorruptInput, kUnsupported (its
// version, or it is split).
Result<Unit> read_unit(const Sections& s, uint64_t at);

// Reads one value. An unknown form makes the cursor bad.
Value read_value(Cursor& c, uint32_t form, int64_t implicit, const Encoding& encoding,
                 uint64_t unit_begin);

// Returns the text or address of a value, empty or 0 where it has none that lies in its section.
std::string_view text_of(const Value& v, const Unit& unit, const Sections& s);
uint64_t address_of(const Value& v, const Unit& unit, const Sections& s);

}  // namespace uptier::dwarf
