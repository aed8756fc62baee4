// Gaps: how far it is to the next sampled event.
//
// The law: the mean of random and fixed gaps is the interval, so `interval` is the unbiased weight
// of one sample. Fixed gaps are exact and alias with programs that are periodic in calls; prime
// gaps shift the period, and their mean is the prime, so weights are off by the same factor
// everywhere; random gaps are geometric, so that each event is sampled with probability 1/interval
// independent of all others, and nothing can alias.
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

// Returns the prime nearest to `n` (the smaller of two equally near); 1 for n = 1, which is no gap.
// `n` <= 2^31.
uint32_t nearest_prime(uint32_t n) noexcept;

// A stream of gaps of one kind; a value.
struct GapLaw {
  GapKind kind = GapKind::kRandom;
  uint32_t interval = 1;  // mean, >= 1
  double scale = 0;       // random gaps: 1 / log(1 - 1/interval)
  uint32_t step = 1;      // what fixed and prime gaps use

  static GapLaw make(GapKind kind, uint32_t interval) noexcept;
  // Draws the next gap; `random` is the caller's generator state (see next_random).
  uint32_t draw(uint64_t& random) const noexcept;
};

// Steps a 64-bit generator and returns 64 random bits. SplitMix64 (Steele, Lea, Flood 2014): one
// addition and three multiplications' worth of mixing, good enough for gaps, no state but a word.
inline uint64_t next_random(uint64_t& state) noexcept {
  uint64_t z = state += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Maps 64 random bits to [0, 1).
constexpr double to_unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace uptier::sampler
