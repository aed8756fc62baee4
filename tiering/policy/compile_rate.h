// CompileRate: what the optimizing compiler costs, as measured here.
//
//   rate += w * (ns / compiled - rate),      w = compiled / (compiled + kMemory)
//   used += v * (inlined / room - used),     v = room / (room + kMemory)
//
// exponentially weighted means over the last kMemory instructions or so. `compiled` are the IR
// instructions of the method and of the bodies that were inlined, `room` those that could have been
// (jit::inlining_room), ns the processor time of all that the compilation took. What a method of n
// instructions will cost is
//
//   rate * (n + used * room(n))
//
// so many small methods that are mostly what is inlined into them say little of a large one. The
// rate begins at what a body of our own took at the start (tiering/compile/machine_rates.cc), or else at
// what is assumed, and `used` at nothing.
//
//   Thread: the caller's lock.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "jit/opt/inline_calls.h"

namespace uptier::tiering {

class CompileRate {
 public:
  static constexpr double kMemory = 2048;

  // `measure`: whether it ever changes.
  CompileRate(double assumed, bool measure) : ns_(assumed), measure_(measure) {}

  void add(uint64_t instructions, uint64_t inlined, uint64_t ns) {
    if (!measure_ || instructions == 0) return;
    auto compiled = static_cast<double>(instructions + inlined);
    assert(compiled > 0);
    ns_ += compiled / (compiled + kMemory) * (static_cast<double>(ns) / compiled - ns_);
    double room = static_cast<double>(jit::inlining_room(instructions));
    double share = std::min(static_cast<double>(inlined) / room, 1.0);
    assert(room > 0 && share >= 0);
    used_ += room / (room + kMemory) * (share - used_);
    ++compilations_;
  }

  // Begins at what was measured before there was anything to compile. Too late, it changes nothing.
  void begin(double ns) {
    if (measure_ && compilations_ == 0 && ns > 0) ns_ = ns;
  }

  // Returns ns an instruction that is compiled.
  double ns() const { return ns_; }
  // Returns ns an instruction of a method of so many, with what will be inlined into it.
  double ns_of(uint64_t instructions) const {
    auto size = static_cast<double>(std::max<uint64_t>(instructions, 1));
    return ns_ * (1 + used_ * static_cast<double>(jit::inlining_room(instructions)) / size);
  }
  uint64_t compilations() const { return compilations_; }

 private:
  double ns_;
  double used_ = 0;
  bool measure_;
  uint64_t compilations_ = 0;
};

}  // namespace uptier::tiering
