// top_print: a table of `uptier top`, for people and for programs.
#pragma once

#include <cstdint>
#include <string>

#include "tools/top_rows.h"

namespace uptier::tools {

// Returns the table as text, with `most` rows at most (0: all).
std::string top_text(const TopTable& t, uint64_t most);
// Returns it as a JSON object on one line, with its newline.
std::string top_line(const TopTable& t, uint64_t most);

}  // namespace uptier::tools
