#include "profile/base/numbers.h"

#include <algorithm>

namespace uptier::profile {
namespace {

UnsignedWide magnitude(Wide value) {
  return value < 0 ? -static_cast<UnsignedWide>(value) : static_cast<UnsignedWide>(value);
}

std::optional<UnsignedWide> parse_magnitude(std::string_view text) {
  uint64_t base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  if (text.empty()) return std::nullopt;
  UnsignedWide value = 0;
  for (const char c : text) {
    uint64_t digit = base;
    if (c >= '0' && c <= '9') digit = static_cast<uint64_t>(c - '0');
    if (c >= 'a' && c <= 'f') digit = static_cast<uint64_t>(c - 'a') + 10;
    const bool fits = digit < base && !__builtin_mul_overflow(value, base, &value) &&
                      !__builtin_add_overflow(value, digit, &value);
    if (!fits) return std::nullopt;
  }
  return value;
}

}  // namespace

Wide mul_div(Wide a, uint64_t b, uint64_t c, uint64_t& saturated) {
  // The product has three 64-bit digits; each is divided together with the remainder of the one
  // above it.
  const UnsignedWide low = UnsignedWide{static_cast<uint64_t>(magnitude(a))} * b;
  const UnsignedWide high = (magnitude(a) >> 64) * b + (low >> 64);
  const uint64_t digits[] = {static_cast<uint64_t>(high >> 64), static_cast<uint64_t>(high),
                             static_cast<uint64_t>(low)};
  UnsignedWide quotient = 0, rest = 0;
  bool fits = true;
  for (const uint64_t digit : digits) {
    fits &= quotient >> 63 == 0;
    const UnsignedWide part = rest << 64 | digit;
    quotient = quotient << 64 | static_cast<uint64_t>(part / c);
    rest = part % c;
  }
  if (!fits) {
    ++saturated;
    quotient = static_cast<UnsignedWide>(kMaxWide);
  }
  return a < 0 ? -static_cast<Wide>(quotient) : static_cast<Wide>(quotient);
}

std::string to_text(Wide value) {
  std::string digits;
  UnsignedWide rest = magnitude(value);
  do {
    digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (value < 0) digits += '-';
  std::ranges::reverse(digits);
  return digits;
}

std::optional<uint64_t> parse_unsigned(std::string_view text) {
  const std::optional<UnsignedWide> value = parse_magnitude(text);
  if (!value || *value > kMaxCount) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

std::optional<Wide> parse_signed(std::string_view text, Wide min, Wide max) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::optional<UnsignedWide> size = parse_magnitude(text);
  if (!size || *size > magnitude(kMinWide)) return std::nullopt;
  if (!negative && *size > static_cast<UnsignedWide>(kMaxWide)) return std::nullopt;
  const Wide value = static_cast<Wide>(negative ? -*size : *size);
  if (value < min || value > max) return std::nullopt;
  return value;
}

}  // namespace uptier::profile
