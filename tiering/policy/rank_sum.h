// RankSum: tests whether one sample of times lies above another, for any distribution.
//
// With U the number of pairs (a, b) in which a is greater, ties counted half, n = |a| + |b| and t
// the sizes of groups of equal values,
//
//   z = (U - |a||b| / 2) / sqrt(|a||b| / 12 * ((n + 1) - sum (t^3 - t) / (n (n - 1))))
//
// has a normal distribution if both samples have the same one, from some eight values each on.
// Times of calls have long tails (interrupts, other threads), which move a mean but hardly a rank.
// Source: Mann and Whitney, 1947; the correction for ties as in Lehmann, Nonparametrics, 1975.
#pragma once

#include <cstdint>
#include <span>

namespace uptier::tiering {

struct RankSum {
  double z = 0;  // positive: a is greater; 0 if either is empty
  uint64_t median_a = 0, median_b = 0;
};

// Pure. Cost: sorts both.
RankSum rank_sum(std::span<const uint64_t> a, std::span<const uint64_t> b);

}  // namespace uptier::tiering
