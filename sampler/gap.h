// Gaps: the distance to the next sampled event.
//
// The law: the mean of random and fixed gaps is the interval, so `interval` is the unbiased weight
// of one sample. Fixed gaps are exact, but alias with programs that are periodic in calls. Prime
// gaps shift the period; their mean is the prime, so all weights are off by the same factor. Random
// gaps are geometric: each event is sampled with probability 1/interval, independently of all
// others, so nothing can alias.
#pragma once

#include <cstdint>

namespace uptier::sampler {

enum class GapKind : uint8_t { kRandom, kFixed, kPrime };

// Returns the number of events up to and including the next sampled one.
//
//   mean    mean gap, in events; 1 samples every event
//   u       one uniform draw in [0, 1)
//
// Geometric with success probability 1/mean, so `mean` is an unbiased weight of a sample.
// Pure; never fails; the result lies in [1, 2^31 - 1].
// Source: inverse transform, Devroye 1986, chapter X.2.
uint32_t next_gap(uint32_t mean, double u) noexcept;

// Returns the prime nearest to `n` (the smaller of two equally near ones); 1 for n = 1: no gap. `n`
// <= 2^31.
uint32_t nearest_prime(uint32_t n) noexcept;

// Steps a 64-bit generator and returns 64 random bits. SplitMix64 (Steele, Lea, Flood 2014): one
// addition and three multiplications' worth of mixing, good enough for gaps; the state is one word.
[[gnu::always_inline]] inline uint64_t next_random(uint64_t& state) noexcept {
  uint64_t z = state += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Maps 64 random bits to [0, 1).
constexpr double to_unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// log2(1 + i/256) for i = 0 .. 256, in units of 2^-56.
struct LogTable {
  uint64_t value[257];
};
extern const LogTable kLogTable;

// Returns -log2(1 - u), in units of 2^-56, where u in [0, 1) is the draw that `bits` represent.
//
// Uses integer arithmetic only, so that code without vector registers can draw gaps of any mean.
// The leading zeros give the whole part; a table with linear interpolation gives the rest. Between
// table points the chord lies up to 2.8e-6 (= 1 / (8 ln 2) / 256^2) below log2, so the result is
// too large by at most that, and the mean of gaps by less than 3e-6 of itself.
[[gnu::always_inline]] inline uint64_t minus_log2(uint64_t bits) noexcept {
  uint64_t v = ~bits | 1;  // (1 - u) * 2^64, to the last bit
  int zeros = __builtin_clzll(v);
  uint64_t m = v << zeros;  // in [1, 2), in units of 2^-63
  const uint64_t* at = kLogTable.value + ((m >> 55) & 255);
  uint64_t between = (m >> 31) & 0xffffff;  // 24 bits of the way to the next table point
  uint64_t log2 = at[0] + ((at[1] - at[0]) >> 24) * between;
  return (static_cast<uint64_t>(zeros + 1) << 56) - log2;
}

// A stream of gaps of one kind; a value.
struct GapLaw {
  GapKind kind = GapKind::kRandom;
  uint32_t interval = 1;  // mean, >= 1
  uint32_t step = 1;      // the length of fixed and prime gaps
  uint64_t scale = 0;     // random gaps: 1 / -log2(1 - 1/interval), in units of 2^-32

  static GapLaw make(GapKind kind, uint32_t interval) noexcept;

  // Returns the mean of the gaps: how many events one sample stands for.
  uint32_t weight() const noexcept { return kind == GapKind::kPrime ? step : interval; }

  // Draws the next gap; `random` is the caller's generator state. The same law as next_gap(), in
  // integers; a few ns, the same for every interval. always_inline: the fast path is compiled
  // without vector registers, and must not share a body with code that uses them.
  [[gnu::always_inline]] uint32_t draw(uint64_t& random) const noexcept {
    if (interval <= 1) return 1;
    if (kind != GapKind::kRandom) return step;
    auto product = static_cast<unsigned __int128>(minus_log2(next_random(random))) * scale;
    auto k = static_cast<uint64_t>(product >> 88);
    return k >= 0x7ffffffe ? 0x7fffffffu : 1 + static_cast<uint32_t>(k);
  }
};

}  // namespace uptier::sampler
