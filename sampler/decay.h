// Decay: a new method is sampled at every call, and the interval widens as samples come in.
//
// A rung is kept until it has given k samples (kSamplesPerRung); then the interval doubles, up to
// the target. So with s samples so far
//
//     interval(s) = min(2^(s / k), target)
//
// and after n calls (or slots of loops), n < k * target,
//
//     samples       s(n) = k * log2(1 + n / k)
//     extra         s - n / target <= k * log2(target), however many calls there are:
//                   64 * 4 = 256 at target 16, 64 * 27 = 1,728 at the widest
//     effective     (sum of w n)^2 / sum of w^2 n, all rungs: k (2^r - 1)^2 / ((4^r - 1) / 3)
//                   = 3k (2^r - 1) / (2^r + 1): k after the first rung, 3k in the end
//
// With k = 64, a method has 192 effective samples before the target rate begins to add to them.
// They give a share of 0.1 to within a fifth of its own value per standard deviation (a tenth would
// take 810): enough to order blocks, not to tell 2 % apart. The cost is bounded by 64 samples per
// rung and method: at 50 ns each, 3.2 us per rung and 86 us in a method's whole life. A method with
// at most 64 calls is counted exactly.
//
// Each thread counts its own k samples, and the first thread to have them moves the rung for all.
// So the bounds hold for one thread; t threads take up to t * k samples at a rung.
//
//   Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sampler/rate.h"

namespace uptier::sampler {

// Returns the interval after one thread has taken `samples` samples.
constexpr uint32_t decayed_interval(uint64_t samples, uint32_t target,
                                    uint32_t per_rung = kSamplesPerRung) {
  uint64_t rung = samples / per_rung;
  if (rung >= 31) return target;
  return std::min(uint32_t{1} << rung, target);
}

// Returns the number of rungs (powers of two) below the target.
constexpr uint32_t rungs_below(uint32_t target) {
  return target <= 1 ? 0 : static_cast<uint32_t>(std::bit_width(target - 1));
}

// Returns the largest possible number of samples beyond those at a constant target interval.
constexpr uint64_t most_extra_samples(uint32_t target, uint32_t per_rung = kSamplesPerRung) {
  return uint64_t{per_rung} * rungs_below(target);
}

// Returns the effective samples once `rungs` rungs are complete.
constexpr double effective_after(uint32_t rungs, uint32_t per_rung = kSamplesPerRung) {
  double last = static_cast<double>(uint64_t{1} << std::min(rungs, 62u));
  return 3.0 * per_rung * (last - 1) / (last + 1);
}

}  // namespace uptier::sampler
