#include "tiering/base/opt_range.h"

#include <charconv>
#include <string>

namespace uptier::tiering {
namespace {

bool parse_hex(std::string_view text, uint64_t& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

void add_byte(uint64_t& state, uint64_t byte) { state = (state ^ byte) * 0x100000001b3ull; }

}  // namespace

Result<OptRange> OptRange::parse(std::string_view text) {
  OptRange range;
  if (text.empty()) return range;
  size_t dots = text.find("..");
  bool ok = dots != std::string_view::npos && parse_hex(text.substr(0, dots), range.low) &&
            parse_hex(text.substr(dots + 2), range.high) && range.low <= range.high;
  if (ok) return range;
  return Error{
      ErrorCode::kInvalidArgument,
      "opt_range: \"" + std::string(text) + "\" is not low..high, two hexadecimal hashes in order"};
}

uint64_t method_hash(const MethodInfo& info) {
  uint64_t state = 0xcbf29ce484222325ull;
  for (int i = 0; i < 8; ++i) add_byte(state, info.key.module_key >> (8 * i) & 0xff);
  for (int i = 0; i < 4; ++i) add_byte(state, info.key.function_index >> (8 * i) & 0xff);
  for (char c : info.name) add_byte(state, static_cast<unsigned char>(c));
  state = (state ^ (state >> 32)) * 0x9e3779b97f4a7c15ull;
  return state ^ (state >> 29);
}

}  // namespace uptier::tiering
