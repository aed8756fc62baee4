#include "profile/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace uptier::profile {
namespace {

using State = std::array<uint32_t, 8>;

constexpr size_t kBlock = 64;

// The fractions of the cube roots of the first 64 primes.
alignas(16) constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void blocks_portable(State& state, const std::byte* at, size_t count) {
  for (; count != 0; --count, at += kBlock) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i) {
      uint32_t word;
      std::memcpy(&word, at + 4 * i, 4);
      w[i] = __builtin_bswap32(word);
    }
    for (int i = 16; i < 64; ++i) {
      const uint32_t x = w[i - 15], y = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + (std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3) +
             (std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (int i = 0; i < 64; ++i) {
      const uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                           ((e & f) ^ (~e & g)) + kRound[i] + w[i];
      const uint32_t two =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
    }
    const State added{a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < state.size(); ++i) state[i] += added[i];
  }
}

#if defined(__x86_64__)

// Each step of sha256rnds2 does two rounds on the state, which is kept as (a b e f) and (c d g h).
__attribute__((target("sha,sse4.1"))) void blocks_by_cpu(State& state, const std::byte* at,
                                                         size_t count) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i dcba = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&state[0]));
  __m128i hgfe = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&state[4]));
  const __m128i badc = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
  __m128i abef = _mm_alignr_epi8(badc, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, badc, 0xf0);
  for (; count != 0; --count, at += kBlock) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i) {
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at) + i), swap);
    }
    for (int i = 0; i < 16; ++i) {
      const __m128i now = w[i & 3];
      __m128i k = _mm_add_epi32(now, _mm_load_si128(reinterpret_cast<const __m128i*>(kRound) + i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
      k = _mm_shuffle_epi32(k, 0x0e);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, k);
      if (i >= 12) continue;
      // The words of four rounds later.
      __m128i next = _mm_sha256msg1_epu32(now, w[(i + 1) & 3]);
      next = _mm_add_epi32(next, _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
      w[i & 3] = _mm_sha256msg2_epu32(next, w[(i + 3) & 3]);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[0]), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[4]), _mm_alignr_epi8(dchg, feba, 8));
}

// CPUID leaf 7, EBX bit 29.
bool cpu_has_sha() {
  unsigned a = 7, b = 0, c = 0, d = 0;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (b >> 29 & 1) != 0 && __builtin_cpu_supports("sse4.1");
}

#endif

void blocks(State& state, const std::byte* at, size_t count) {
#if defined(__x86_64__)
  static const bool by_cpu = cpu_has_sha();
  if (by_cpu) return blocks_by_cpu(state, at, count);
#endif
  blocks_portable(state, at, count);
}

// Fills `open` and passes on whole blocks to `take`.
template <typename Take>
void add_bytes(std::array<std::byte, kBlock>& open, uint64_t& size, ByteSpan bytes, Take take) {
  const size_t filled = size % kBlock;
  size += bytes.size();
  if (filled != 0) {
    const size_t some = std::min(bytes.size(), kBlock - filled);
    std::copy_n(bytes.begin(), some, open.begin() + static_cast<ptrdiff_t>(filled));
    bytes = bytes.subspan(some);
    if (filled + some < kBlock) return;
    take(open.data(), size_t{1});
  }
  const size_t whole = bytes.size() / kBlock;
  if (whole != 0) take(bytes.data(), whole);
  std::ranges::copy(bytes.subspan(whole * kBlock), open.begin());
}

// Pads with a 1 bit, zeros, and the size in bits.
template <typename Take>
Sha256 finish_with(const State& state, std::array<std::byte, kBlock>& open, uint64_t size,
                   Take take) {
  const uint64_t bits = size * 8;
  std::array<std::byte, kBlock + 8> padding{std::byte{0x80}};
  const size_t length = (kBlock + 56 - size % kBlock - 1) % kBlock + 1;
  const uint64_t big_endian = __builtin_bswap64(bits);
  std::memcpy(padding.data() + length, &big_endian, 8);
  add_bytes(open, size, ByteSpan(padding).first(length + 8), take);
  Sha256 hash;
  for (size_t i = 0; i < state.size(); ++i) {
    const uint32_t word = __builtin_bswap32(state[i]);
    std::memcpy(hash.data() + 4 * i, &word, 4);
  }
  return hash;
}

}  // namespace

void Sha256Hasher::add(ByteSpan bytes) {
  add_bytes(open_, size_, bytes,
            [this](const std::byte* at, size_t count) { blocks(state_, at, count); });
}

Sha256 Sha256Hasher::finish() {
  return finish_with(state_, open_, size_,
                     [this](const std::byte* at, size_t count) { blocks(state_, at, count); });
}

Sha256 sha256(ByteSpan bytes) {
  Sha256Hasher hasher;
  hasher.add(bytes);
  return hasher.finish();
}

Sha256 sha256_portable(ByteSpan bytes) {
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlock> open{};
  uint64_t size = 0;
  const auto take = [&](const std::byte* at, size_t count) { blocks_portable(state, at, count); };
  add_bytes(open, size, bytes, take);
  return finish_with(state, open, size, take);
}

}  // namespace uptier::profile
