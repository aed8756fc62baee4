// SpeedupRate: the measured speedup of optimized code over baseline code.
//
//   log(rate) += (log(ratio) - log(rate)) / (kPrior + trials, at most kMemory)
//
// This is a mean of the ratios found in trials (trial.h). It starts with an assumption, which
// counts like kPrior trials. Ratios below 1 count, too: methods that do not get faster are part of
// the expectation.
//
//   Thread: the caller's lock.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace uptier::tiering {

class SpeedupRate {
 public:
  static constexpr uint32_t kPrior = 4;
  static constexpr uint32_t kMemory = 64;
  // Trials of first versions per runtime; after that enough is known, and trials cost nothing more.
  static constexpr uint32_t kMostTrials = 16;

  // `measure`: whether it ever changes.
  SpeedupRate(double assumed, bool measure) : log_(std::log(assumed)), measure_(measure) {}

  void add(double ratio) {
    if (!measure_ || !(ratio > 0)) return;
    ++trials_;
    auto weight = static_cast<double>(std::min(kPrior + trials_, kMemory));
    log_ += (std::log(ratio) - log_) / weight;
  }

  // Says whether one more trial may begin, and counts it.
  bool begin() { return measure_ && begun_ < kMostTrials && ++begun_ != 0; }

  double factor() const { return std::max(1.0, std::exp(log_)); }
  uint32_t trials() const { return trials_; }

 private:
  double log_;
  bool measure_;
  uint32_t trials_ = 0, begun_ = 0;
};

}  // namespace uptier::tiering
