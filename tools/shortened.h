// shortened: a name in a column of a table.
#pragma once

#include <string>
#include <string_view>

namespace uptier::tools {

// Returns `name` if it has at most `width` bytes; otherwise its beginning and "...", at most
// `width` bytes together, cut between characters of UTF-8.
inline std::string shortened(std::string_view name, size_t width) {
  if (name.size() <= width) return std::string(name);
  size_t end = width - 3;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return std::string(name.substr(0, end)) + "...";
}

}  // namespace uptier::tools
