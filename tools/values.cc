#include "tools/values.h"

#include <bit>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace uptier::tools {
namespace {

std::optional<uint64_t> parse_int(std::string_view text, bool wide) {
  bool negative = !text.empty() && text[0] == '-';
  if (negative) text.remove_prefix(1);
  bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) text.remove_prefix(2);
  uint64_t v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v, hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  uint64_t highest =
      negative ? (wide ? uint64_t{1} << 63 : uint64_t{1} << 31) : (wide ? UINT64_MAX : UINT32_MAX);
  if (v > highest) return std::nullopt;
  if (negative) v = 0 - v;
  return wide ? v : static_cast<uint32_t>(v);
}

// Parses the whole text with strtof or strtod. The result is infinite only if the text says so.
template <typename F>
std::optional<F> parse_float(const std::string& text, F (*parse)(const char*, char**)) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0]))) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  F v = parse(text.c_str(), &end);
  if (end != text.c_str() + text.size()) return std::nullopt;
  if (errno == ERANGE && std::isinf(v)) return std::nullopt;
  return v;
}

}  // namespace

std::optional<uint64_t> parse_value(Type t, const std::string& given) {
  std::string text = given;
  if (size_t colon = text.find(':'); colon != std::string::npos) {
    if (text.substr(0, colon) != type_name(t)) return std::nullopt;
    text.erase(0, colon + 1);
  }
  if (!is_float(t)) return parse_int(text, is_wide(t));
  if (t == Type::kF32) {
    std::optional<float> v = parse_float(text, std::strtof);
    return v ? std::optional<uint64_t>(std::bit_cast<uint32_t>(*v)) : std::nullopt;
  }
  std::optional<double> v = parse_float(text, std::strtod);
  return v ? std::optional<uint64_t>(std::bit_cast<uint64_t>(*v)) : std::nullopt;
}

std::string print_value(Type t, uint64_t bits) {
  char text[64];
  switch (t) {
    case Type::kI32: std::snprintf(text, sizeof text, "%d", static_cast<int32_t>(bits)); break;
    case Type::kF32:
      std::snprintf(text, sizeof text, "%.9g",
                    static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
      break;
    case Type::kF64: std::snprintf(text, sizeof text, "%.17g", std::bit_cast<double>(bits)); break;
    default: std::snprintf(text, sizeof text, "%lld", static_cast<long long>(bits));
  }
  return text;
}

}  // namespace uptier::tools
