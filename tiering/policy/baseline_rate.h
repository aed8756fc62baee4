// BaselineRate: how long baseline code takes for an instruction of the IR, as measured here.
//
//   log(rate) += (log(ns / instructions) - log(rate)) / (kPrior + trials, at most kMemory)
//
// a mean over the methods whose baseline code trials have timed (trial.h), which begins at what a
// body of our own took at the start (tiering/compile/machine_rates.cc), or else at what is assumed, as if
// that had been found kPrior times. Programs differ by more than a factor of two, so what is rare
// among them must not move it far: a mean of logarithms.
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

  // `measure`: whether it ever changes. What is assumed to take no time stays so.
  BaselineRate(double assumed, bool measure) : ns_(assumed), measure_(measure && assumed > 0) {}

  // Begins at what was measured before anything was timed. Too late, it changes nothing.
  void begin(double ns) {
    if (!measure_ || measured() || !(ns > 0)) return;
    ns_ = ns;
    begun_ = true;
  }

  // One call of a method: the instructions that it executed, and how long that took.
  void add(double instructions, double ns) {
    if (!measure_ || !(instructions >= 1) || !(ns > 0)) return;
    ++trials_;
    assert(ns_ > 0);  // its logarithm is wanted
    auto weight = static_cast<double>(std::min(kPrior + trials_, kMemory));
    ns_ *= std::exp(std::log(ns / instructions / ns_) / weight);
  }

  // Returns ns an instruction.
  double ns() const { return ns_; }
  bool measured() const { return begun_ || trials_ != 0; }

 private:
  double ns_;
  bool measure_;
  bool begun_ = false;
  uint32_t trials_ = 0;
};

}  // namespace uptier::tiering
