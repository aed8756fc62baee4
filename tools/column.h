// column: a text as a column of a table for people.
#pragma once

#include <string>
#include <string_view>

namespace uptier::tools {

// Returns the text, filled up with blanks to `width` characters of UTF-8. A longer one is cut between
// two of them, and ends with "..."; control characters become "?".
std::string column(std::string_view text, size_t width);

}  // namespace uptier::tools
