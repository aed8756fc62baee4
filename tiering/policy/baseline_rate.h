// BaselineRate: the measured time that baseline code takes per IR instruction.
//
//   log(rate) += (log(ns / instructions) - log(rate)) / (kPrior + trials, at most kMemory)
//
// This is a mean over the methods whose baseline code was timed in trials (trial.h). It starts with
// the time of our own test body at the start (tiering/compile/machine_rates.cc), or else with an
// assumption, which counts like kPrior trials. Programs differ by more than a factor of two, so
// rare ones must not move it far: hence a mean of logarithms.
//
//   Thread: the caller's lock.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>

namespace uptier::tiering {

class BaselineRate {
 public:
  static constexpr uint32_t kPrior = 4;
  static constexpr uint32_t kMemory = 64;

  // `measure`: whether it ever changes. An assumed rate of 0 stays 0.
  BaselineRate(double assumed, bool measure) : ns_(assumed), measure_(measure && assumed > 0) {}

  // Sets the rate measured before anything was timed; after that, it does nothing.
  void begin(double ns) {
    if (!measure_ || measured() || !(ns > 0)) return;
    ns_ = ns;
    begun_ = true;
  }

  // Adds one call of a method: the instructions that it executed, and its time.
  void add(double instructions, double ns) {
    if (!measure_ || !(instructions >= 1) || !(ns > 0)) return;
    ++trials_;
    assert(ns_ > 0);  // its logarithm is needed
    auto weight = static_cast<double>(std::min(kPrior + trials_, kMemory));
    ns_ *= std::exp(std::log(ns / instructions / ns_) / weight);
  }

  // Returns ns per instruction.
  double ns() const { return ns_; }
  bool measured() const { return begun_ || trials_ != 0; }

 private:
  double ns_;
  bool measure_;
  bool begun_ = false;
  uint32_t trials_ = 0;
};

}  // namespace uptier::tiering
