// numbers.h: sums that saturate at 2^64-1, and 128-bit sums in two words.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace uptier::profile {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

inline constexpr uint64_t kMaxCount = std::numeric_limits<uint64_t>::max();

// Returns whether the sum saturated at kMaxCount.
inline bool add_saturating(uint64_t& sum, uint64_t value) {
  if (!__builtin_add_overflow(sum, value, &sum)) return false;
  sum = kMaxCount;
  return true;
}

inline uint64_t mul_saturating(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMaxCount : product;
}

// Returns a * b / c, rounded down, at most kMaxCount; `saturated` counts the times it was limited.
inline uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c, uint64_t& saturated) {
  const UnsignedWide exact = UnsignedWide{a} * b / c;
  if (exact <= kMaxCount) return static_cast<uint64_t>(exact);
  ++saturated;
  return kMaxCount;
}

// Load and store a 128-bit number in two words, the low one first.
inline Wide load_wide(const uint64_t* words) {
  return static_cast<Wide>(UnsignedWide{words[1]} << 64 | words[0]);
}
inline void store_wide(uint64_t* words, Wide value) {
  words[0] = static_cast<uint64_t>(value);
  words[1] = static_cast<uint64_t>(static_cast<UnsignedWide>(value) >> 64);
}

// Modulo 2^128, as for two's complement numbers.
inline Wide add_wrapping(Wide a, Wide b) {
  return static_cast<Wide>(static_cast<UnsignedWide>(a) + static_cast<UnsignedWide>(b));
}
inline Wide sub_wrapping(Wide a, Wide b) {
  return static_cast<Wide>(static_cast<UnsignedWide>(a) - static_cast<UnsignedWide>(b));
}
inline Wide mul_wrapping(Wide a, uint64_t b) {
  return static_cast<Wide>(static_cast<UnsignedWide>(a) * b);
}

// Returns a * b / c, rounded towards 0; saturates at the greatest number of a's sign.
Wide mul_div(Wide a, uint64_t b, uint64_t c, uint64_t& saturated);

// Prints a signed decimal.
std::string to_text(Wide value);

// Parses decimal or 0x digits without sign; nothing if they do not fit.
std::optional<uint64_t> parse_unsigned(std::string_view text);

// Parses the same with an optional minus; nothing if it lies outside of [min, max].
std::optional<Wide> parse_signed(std::string_view text, Wide min, Wide max);

inline constexpr Wide kMaxWide = static_cast<Wide>(~UnsignedWide{0} >> 1);
inline constexpr Wide kMinWide = -kMaxWide - 1;

}  // namespace uptier::profile
