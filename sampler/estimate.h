// Estimate: the number of events that counters stand for, if they were counted at several rates.
//
//     estimate = sum over windows of weight * (counts at the window's end - at its start)
//
// A window lies between two flushes of one (thread, method), and `weight` belongs to the one rate
// that was in force in it (rate.h). With unequal weights, n samples tell less than n equal ones;
// they are worth
//
//     effective = (sum of weight * n)^2 / sum of weight^2 * n                    (Kish 1965)
//
//   Thread: its owner. Memory: two words per counter.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace uptier::sampler {

// Increments of the counters in one window.
struct Window {
  std::vector<uint64_t> counts;  // as counted, not weighted
  uint64_t samples = 0;          // sampled calls and bursts
  uint32_t weight = 1;
};

class Estimate {
 public:
  // Ends a window and returns its contents. `counts` and `samples` are cumulative, as flushes are.
  // A counter that has shrunk (wrapped, or replaced) counts from 0.
  Window take(uint32_t weight, uint64_t samples, std::span<const uint64_t> counts);

  // Estimated executions, per counter; saturating.
  std::span<const uint64_t> values() const { return values_; }
  double effective_samples() const { return squares_ == 0 ? 0 : sum_ * sum_ / squares_; }

 private:
  std::vector<uint64_t> last_;
  std::vector<uint64_t> values_;
  uint64_t last_samples_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

}  // namespace uptier::sampler
