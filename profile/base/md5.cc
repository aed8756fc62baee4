#include "profile/base/md5.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <string>

namespace uptier::profile {
namespace {

using Md5State = std::array<uint32_t, 4>;

constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

// Returns the constants of the 64 steps: the integer parts of 2^32 * |sin(i + 1)|.
std::array<uint32_t, 64> sines() {
  std::array<uint32_t, 64> out;
  for (uint32_t i = 0; i < 64; ++i) {
    out[i] = static_cast<uint32_t>(std::floor(std::fabs(std::sin(i + 1.0)) * 4294967296.0));
  }
  return out;
}

uint32_t little_word(const char* at) {
  uint32_t n = 0;
  for (int i = 3; i >= 0; --i) n = n << 8 | static_cast<uint8_t>(at[i]);
  return n;
}

// Returns the function of step `i`, which each round of 16 steps has for itself.
uint32_t mix(uint32_t i, uint32_t b, uint32_t c, uint32_t d) {
  if (i < 16) return (b & c) | (~b & d);
  if (i < 32) return (d & b) | (~d & c);
  return i < 48 ? b ^ c ^ d : c ^ (b | ~d);
}

// Returns the word of the block that step `i` adds.
uint32_t word_of(uint32_t i) {
  constexpr uint32_t kTimes[] = {1, 5, 3, 7}, kPlus[] = {0, 1, 5, 0};
  return (kTimes[i / 16] * i + kPlus[i / 16]) % 16;
}

void add_block(Md5State& s, const char* block) {
  static const std::array<uint32_t, 64> kSines = sines();
  auto [a, b, c, d] = s;
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t sum =
        a + mix(i, b, c, d) + kSines[i] + little_word(block + size_t{4} * word_of(i));
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kShifts[i / 16][i % 4]);
  }
  s = {s[0] + a, s[1] + b, s[2] + c, s[3] + d};
}

}  // namespace

std::array<uint8_t, 16> md5(std::string_view text) {
  std::string padded(text);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  const uint64_t bits = uint64_t{text.size()} * 8;
  for (int i = 0; i < 8; ++i) padded += static_cast<char>(bits >> (8 * i));
  Md5State s = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (size_t at = 0; at < padded.size(); at += 64) add_block(s, padded.data() + at);
  std::array<uint8_t, 16> out;
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>(s[i / 4] >> (8 * (i % 4)));
  return out;
}

uint64_t name_guid(std::string_view name) {
  const std::array<uint8_t, 16> digest = md5(name);
  uint64_t guid = 0;
  for (size_t i = 8; i > 0; --i) guid = guid << 8 | digest[i - 1];
  return guid;
}

}  // namespace uptier::profile
