// The fixture of the loop timer tests: a slab with loops, and the calls that compiled code would
// make.
#pragma once

#include <gtest/gtest.h>
#include <x86intrin.h>

#include <cstdint>

#include "sampler/loop_timer.h"

namespace uptier::test {

// The slab of one method with four loops.
struct TimedMethod {
  uint64_t slab[4 * sampler::kLoopDualWords] = {};
  uint32_t records = 100;

  uint64_t* loop(int l) { return slab + l * sampler::kLoopDualWords; }
  sampler::LoopKey key(int l, uint64_t frame, bool function = false) {
    return {slab, loop(l), frame, records, function};
  }
  uint64_t timed(int l) { return loop(l)[sampler::kLoopTimed]; }
  uint64_t open(int l) { return sampler::loop_open(loop(l)[sampler::kLoopState]); }
};

class LoopTimerTest : public ::testing::Test {
 protected:
  // Does the work of compiled code at a loop entry; returns whether the entry is due.
  static bool due(TimedMethod& m, int l) {
    m.loop(l)[sampler::kLoopEntries] += 1;
    return static_cast<int64_t>(--m.loop(l)[sampler::kLoopState]) < 0;
  }
  void enter(TimedMethod& m, int l, uint64_t frame, bool function = false) {
    if (!due(m, l)) return;
    uint64_t now = fenced();
    timer.enter(m.key(l, frame, function), now);
    *timer.spend(now) += fenced();
  }
  void leave(TimedMethod& m, int l, uint64_t frame) {
    uint64_t now = fenced();
    timer.leave(m.key(l, frame), now);
    *timer.spend(now) += fenced();
  }
  static uint64_t fenced() {
    _mm_lfence();
    uint64_t now = __rdtsc();
    _mm_lfence();
    return now;
  }
  // One loop execution that takes `cycles` by the simulated clock `now`.
  void execute(TimedMethod& m, int l, uint64_t& now, uint64_t cycles) {
    if (due(m, l)) timer.enter(m.key(l, 1000), now);
    now += cycles;
    if (m.open(l) != 0) timer.leave(m.key(l, 1000), now);
  }
  static void spin(uint64_t cycles) {
    for (uint64_t start = __rdtsc(); __rdtsc() - start < cycles;) {}
  }

  sampler::LoopTimer timer;
  TimedMethod a, b;
};

}  // namespace uptier::test
