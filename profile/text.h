// text.h: the small pieces that the text forms share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace uptier::profile {

// Returns 0x and 16 hexadecimal digits.
std::string hex(uint64_t value);

// Returns the text in double quotes; quotes, backslashes and control characters are escaped as
// \", \\ and \xNN, all other bytes stand for themselves.
std::string quote(std::string_view text);

}  // namespace uptier::profile
