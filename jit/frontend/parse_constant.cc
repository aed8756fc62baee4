#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "jit/frontend/parse.h"
#include "jit/ir/semantics.h"

namespace uptier::jit {
namespace {

bool starts_hex(std::string_view s) {
  return s.size() > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
}

std::optional<uint64_t> parse_unsigned(std::string_view s) {
  int base = starts_hex(s) ? 16 : 10;
  if (base == 16) s.remove_prefix(2);
  uint64_t v = 0;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v, base);
  if (s.empty() || error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return v;
}

// Accepts -2^(n-1) to 2^n - 1: both signed and unsigned spellings.
std::optional<uint64_t> parse_int(Type t, std::string_view s) {
  bool negative = !s.empty() && s[0] == '-';
  auto v = parse_unsigned(negative ? s.substr(1) : s);
  if (!v) return std::nullopt;
  uint64_t most = clip(t, ~uint64_t{0});
  if (*v > (negative ? (most >> 1) + 1 : most)) return std::nullopt;
  return clip(t, negative ? ~*v + 1 : *v);
}

template <typename F, typename U>
std::optional<uint64_t> parse_float(std::string_view s) {
  constexpr U kSign = U{1} << (8 * sizeof(U) - 1);
  bool negative = !s.empty() && s[0] == '-';
  if (negative) s.remove_prefix(1);
  U sign = negative ? kSign : 0;
  if (s == "inf") return sign | std::bit_cast<U>(std::numeric_limits<F>::infinity());
  if (s == "nan") return sign | std::bit_cast<U>(std::numeric_limits<F>::quiet_NaN());
  if (s.starts_with("nan:")) {
    auto bits = parse_unsigned(s.substr(4));
    bool fits = bits && *bits <= std::numeric_limits<U>::max() && !negative;
    F v = fits ? std::bit_cast<F>(static_cast<U>(*bits)) : F{0};
    return std::isnan(v) ? bits : std::nullopt;
  }
  bool hex = starts_hex(s);
  if (hex) s.remove_prefix(2);
  // from_chars also accepts words and a sign, which are refused here.
  auto begins = [&](char c) {
    return (c >= '0' && c <= '9') || c == '.' || (hex && (c | 32) >= 'a' && (c | 32) <= 'f');
  };
  if (s.empty() || !begins(s[0])) return std::nullopt;
  F v = 0;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v,
                                      hex ? std::chars_format::hex : std::chars_format::general);
  if (error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return sign | std::bit_cast<U>(v);
}

}  // namespace

std::optional<uint64_t> parse_constant(Type t, std::string_view text) {
  switch (t) {
    case Type::kI32:
    case Type::kI64: return parse_int(t, text);
    case Type::kF32: return parse_float<float, uint32_t>(text);
    case Type::kF64: return parse_float<double, uint64_t>(text);
    case Type::kRef: return text == "null" ? 0 : parse_unsigned(text);
    default: return std::nullopt;
  }
}

}  // namespace uptier::jit
