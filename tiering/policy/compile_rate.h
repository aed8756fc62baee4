// CompileRate: the measured cost of the optimizing compiler.
//
//   rate += w * (ns / compiled - rate),      w = compiled / (compiled + kMemory)
//   used += v * (inlined / room - used),     v = room / (room + kMemory)
//
// These are exponentially weighted means over the last kMemory instructions or so. `compiled` is
// the number of IR instructions of the method and of its inlined bodies, `room` the number that
// could have been inlined (jit::inlining_room), and ns the processor time of the whole compilation.
// A method of n instructions is predicted to cost
//
//   rate * (n + used * room(n))
//
// so many small methods that consist mostly of inlined bodies tell little about a large one. The
// rate starts with the time of our own test body at the start (tiering/compile/machine_rates.cc),
// or else with an assumption; `used` starts at 0.
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

  // Sets the rate measured before the first compilation; after that, it does nothing.
  void begin(double ns) {
    if (measure_ && compilations_ == 0 && ns > 0) ns_ = ns;
  }

  // Returns ns per compiled instruction.
  double ns() const { return ns_; }
  // Returns ns per instruction of a method of this size, including the predicted inlining.
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
