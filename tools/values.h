// values.h: numbers as people type and read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "uptier/ids.h"

namespace uptier::tools {

// Parses a decimal or 0x number, or a float with nan and inf, as the bits of a value; "i32:5" names
// the type too, which must then be `t`. Returns nothing when it is not one, or does not fit.
std::optional<uint64_t> parse_value(Type t, const std::string& text);

// Prints integers as signed decimals, floats with the digits that read back exactly; of a NaN only
// the sign.
std::string print_value(Type t, uint64_t bits);

}  // namespace uptier::tools
