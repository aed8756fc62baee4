// CompileRate: what the optimizing compiler costs an instruction of the IR, as measured here.
//
//   rate += w * (ns / instructions - rate),   w = instructions / (instructions + kMemory)
//
// an exponentially weighted mean over the last kMemory instructions or so, which begins at what a
// body of our own took at the start (tiering/code/calibrate.cc), or else at what is assumed. A small method changes little: what a compilation costs by itself is spread over few
// instructions there. Instructions are those of the method, ns the processor time of all that its
// compilation took: the host's description and the bodies that were inlined are in it, so what is
// predicted by the method's size is what will be paid.
//
//   Thread: the caller's lock.
#pragma once

#include <cstdint>

namespace uptier::tiering {

class CompileRate {
 public:
  static constexpr double kMemory = 2048;

  // `measure`: whether it ever changes.
  CompileRate(double assumed, bool measure) : ns_(assumed), measure_(measure) {}

  void add(uint64_t instructions, uint64_t ns) {
    if (!measure_ || instructions == 0) return;
    auto size = static_cast<double>(instructions);
    ns_ += size / (size + kMemory) * (static_cast<double>(ns) / size - ns_);
    ++compilations_;
  }

  // Begins at what was measured before there was anything to compile. Too late, it changes nothing.
  void begin(double ns) {
    if (measure_ && compilations_ == 0 && ns > 0) ns_ = ns;
  }

  // Returns ns an instruction.
  double ns() const { return ns_; }
  uint64_t compilations() const { return compilations_; }

 private:
  double ns_;
  bool measure_;
  uint64_t compilations_ = 0;
};

}  // namespace uptier::tiering
