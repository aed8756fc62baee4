#include "tools/values.h"

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace uptier::tools {
namespace {

std::optional<uint64_t> parse_int(const char* text, bool wide) {
  char* end = nullptr;
  errno = 0;
  if (text[0] == '-') {
    long long v = std::strtoll(text, &end, 0);
    if (*end != 0 || errno != 0 || (!wide && v < INT32_MIN)) return std::nullopt;
    return wide ? static_cast<uint64_t>(v) : static_cast<uint32_t>(v);
  }
  unsigned long long v = std::strtoull(text, &end, 0);
  if (*text == 0 || *end != 0 || errno != 0 || (!wide && v > UINT32_MAX)) return std::nullopt;
  return v;
}

}  // namespace

std::optional<uint64_t> parse_value(Type t, const std::string& given) {
  std::string text = given;
  if (size_t colon = text.find(':'); colon != std::string::npos) {
    if (text.substr(0, colon) != type_name(t)) return std::nullopt;
    text.erase(0, colon + 1);
  }
  if (!is_float(t)) return parse_int(text.c_str(), is_wide(t));
  char* end = nullptr;
  if (t == Type::kF32) {
    float v = std::strtof(text.c_str(), &end);
    if (text.empty() || *end != 0) return std::nullopt;
    return std::bit_cast<uint32_t>(v);
  }
  double v = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0) return std::nullopt;
  return std::bit_cast<uint64_t>(v);
}

std::string print_value(Type t, uint64_t bits) {
  char text[64];
  switch (t) {
    case Type::kI32:
      std::snprintf(text, sizeof text, "%d", static_cast<int32_t>(bits));
      break;
    case Type::kF32:
      std::snprintf(text, sizeof text, "%.9g",
                    static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
      break;
    case Type::kF64: std::snprintf(text, sizeof text, "%.17g", std::bit_cast<double>(bits)); break;
    default:
      std::snprintf(text, sizeof text, "%lld", static_cast<long long>(bits));
  }
  return text;
}

}  // namespace uptier::tools
