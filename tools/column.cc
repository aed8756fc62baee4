#include "tools/column.h"

namespace uptier::tools {
namespace {

constexpr std::string_view kCut = "...";

// Of each character of UTF-8 one byte is none of these.
bool goes_on(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

std::string column(std::string_view text, size_t width) {
  std::string out;
  size_t characters = 0, short_end = 0;  // where it ends with room for the mark of a cut
  for (const char c : text) {
    if (!goes_on(c)) {
      if (characters + kCut.size() == width) short_end = out.size();
      if (characters == width) return out.substr(0, short_end) + std::string(kCut);
      ++characters;
    }
    out += is_control(c) ? '?' : c;
  }
  return out + std::string(width - characters, ' ');
}

}  // namespace uptier::tools
