// SpeedupRate: how many times as fast as baseline code optimized code is, as measured here.
//
//   log(rate) += (log(ratio) - log(rate)) / (kPrior + trials, at most kMemory)
//
// a mean of the ratios that trials found (trial.h), which begins at what is assumed, as if that had
// been found kPrior times. A ratio below 1 counts: what does not get faster is part of what is to
// be expected.
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
  // Trials of first versions, a runtime: then enough is known, and nothing is paid any more.
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
