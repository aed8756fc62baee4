#include "profile/formats/md5.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

namespace uptier::profile {
namespace {

using State = std::array<uint32_t, 4>;

constexpr size_t kBlock = 64;

// The table T of the RFC: 2^32 times the absolute sine of 1 to 64, as whole numbers.
std::array<uint32_t, 64> sines() {
  std::array<uint32_t, 64> t{};
  for (size_t i = 0; i < t.size(); ++i) {
    t[i] =
        static_cast<uint32_t>(std::floor(std::abs(std::sin(static_cast<double>(i + 1))) * 0x1p32));
  }
  return t;
}

// The function of a round, 0 to 3.
uint32_t mixed(size_t round, uint32_t b, uint32_t c, uint32_t d) {
  switch (round) {
    case 0: return (b & c) | (~b & d);
    case 1: return (b & d) | (c & ~d);
    case 2: return b ^ c ^ d;
    default: return c ^ (b | ~d);
  }
}

// The word of the block that a step uses.
size_t word_of(size_t step) {
  static constexpr size_t kFactor[] = {1, 5, 3, 7}, kStart[] = {0, 1, 5, 0};
  return (kFactor[step / 16] * step + kStart[step / 16]) % 16;
}

void add_block(State& state, const char* block) {
  static const std::array<uint32_t, 64> kSines = sines();
  static constexpr int kTurns[4][4] = {
      {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  uint32_t words[16];
  std::memcpy(words, block, kBlock);
  auto [a, b, c, d] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t sum = a + mixed(i / 16, b, c, d) + kSines[i] + words[word_of(i)];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kTurns[i / 16][i % 4]);
  }
  const State added{a, b, c, d};
  for (size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

}  // namespace

static_assert(std::endian::native == std::endian::little);

std::array<uint8_t, 16> md5(std::string_view text) {
  std::string padded(text);
  padded += '\x80';
  while (padded.size() % kBlock != kBlock - 8) padded += '\0';
  const uint64_t bits = uint64_t{text.size()} * 8;
  padded.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  State state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (size_t at = 0; at < padded.size(); at += kBlock) add_block(state, padded.data() + at);
  std::array<uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), state.data(), bytes.size());
  return bytes;
}

uint64_t llvm_guid(std::string_view name) {
  const std::array<uint8_t, 16> bytes = md5(name);
  uint64_t guid;
  std::memcpy(&guid, bytes.data(), sizeof guid);
  return guid;
}

}  // namespace uptier::profile
