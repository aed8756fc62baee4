// The sum of a loop, estimated from its records: the number of records, and the error of the
// estimate.
#include <cmath>

#include "sampler/loop_pace.h"
#include "tests/support/loop_timer_fixture.h"

namespace uptier::test::loop_records_test {
namespace {

using sampler::LoopTimer;
using Method = TimedMethod;
class LoopRecords : public LoopTimerTest {};

// Executions that take longer the later they come after a flush.
uint64_t drifting(uint64_t n) { return 1000 + n; }

TEST_F(LoopRecords, records_are_spread_so_that_a_drift_within_a_window_does_no_harm) {
  constexpr uint64_t kWindow = 20'000;
  a.records = 512;
  uint64_t now = 0;
  for (int window = 0; window < 6; ++window) {
    uint64_t* w = a.loop(0);
    uint64_t timed = w[sampler::kLoopTimed], cycles = w[sampler::kLoopCycles];
    uint64_t truth = 0, first = 0;
    for (uint64_t n = 0; n < kWindow; ++n) {
      if (due(a, 0)) timer.enter(a.key(0, 1000), now);
      now += drifting(n);
      if (a.open(0) != 0) timer.leave(a.key(0, 1000), now);
      truth += drifting(n);
      if (n < a.records) first += drifting(n);
    }
    auto mean = static_cast<double>(w[sampler::kLoopCycles] - cycles) /
                static_cast<double>(w[sampler::kLoopTimed] - timed);
    double want = static_cast<double>(truth) / kWindow;
    EXPECT_NEAR(mean / want, 1, 0.03) << window;
    EXPECT_LT(static_cast<double>(first) / a.records / want, 0.2) << "what the first ones say";
    sampler::rearm_loop(w);
  }
}

// The estimate of a window's sum: its relative error, and the standard error that its words state.
struct Told {
  double off, error;
};
Told told(const uint64_t* w, double truth, double entries) {
  auto timed = static_cast<double>(w[sampler::kLoopTimed]);
  double mean = static_cast<double>(w[sampler::kLoopCycles]) / timed;
  double squares = static_cast<double>(w[sampler::kLoopSquaresHigh]) * 0x1p64 +
                   static_cast<double>(w[sampler::kLoopSquaresLow]);
  double variance = (squares / timed - mean * mean) / timed * (1 - timed / entries);
  return {mean * entries / truth - 1, std::sqrt(std::max(variance, 0.0)) / mean};
}

TEST_F(LoopRecords, executions_that_differ_are_recorded_more_often_until_their_sum_is_known) {
  constexpr uint64_t kEntries = 200'000;
  a.records = b.records = 512;
  uint64_t now = 0, random = 3, truth = 0;
  for (uint64_t n = 0; n < kEntries; ++n) {
    uint64_t cycles = sampler::next_random(random) >> 60 == 0 ? 10'000 : 100;
    execute(a, 0, now, cycles);
    execute(b, 0, now, 100);
    truth += cycles;
  }
  EXPECT_LT(b.timed(0), 512u);
  EXPECT_GT(a.timed(0), 2'000u);
  EXPECT_LT(a.timed(0), sampler::LoopPace::kMostTimes * 512u);
  EXPECT_LT(told(a.loop(0), static_cast<double>(truth), kEntries).error, 0.08);
}

// Executions of a tile are alike here. Taken as independent draws, they would promise a third of
// the real error.
TEST_F(LoopRecords, the_error_that_is_stated_is_that_of_tiles) {
  constexpr uint64_t kEntries = 50'000, kAlike = 200, kRuns = 200;
  int within = 0, close = 0;
  for (uint64_t run = 0; run < kRuns; ++run) {
    Method m;
    m.records = 256;
    LoopTimer timed;
    timed.seed(run + 1);
    uint64_t now = 0, random = 1000 + run, truth = 0, cycles = 0;
    for (uint64_t n = 0; n < kEntries; ++n) {
      if (n % kAlike == 0) cycles = 100 + (sampler::next_random(random) >> 54);
      if (due(m, 0)) timed.enter(m.key(0, 1000), now);
      now += cycles;
      truth += cycles;
      if (m.open(0) != 0) timed.leave(m.key(0, 1000), now);
    }
    Told t = told(m.loop(0), static_cast<double>(truth), kEntries);
    within += std::abs(t.off) < 2 * t.error ? 1 : 0;
    close += t.error < 0.15 ? 1 : 0;
  }
  EXPECT_GT(within, 180) << "of 200, 191 are meant";
  EXPECT_GT(close, 190) << "and not by stating more than there is";
}

// A recursive sort that calls itself for each half: a few executions take most of the time.
TEST_F(LoopRecords, recursion_whose_outermost_executions_are_long_is_known_from_one_run_of_it) {
  int close = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Method m;
    m.records = 256;
    LoopTimer timed;
    timed.seed(seed);
    uint64_t now = 0, random = 100 + seed;
    auto sort = [&](auto& self, uint64_t frame, uint64_t size) -> void {
      if (due(m, 0)) timed.enter(m.key(0, frame), now);
      now += 5 + 3 * size;
      uint64_t below = size / 4 + sampler::next_random(random) % (size / 2 + 1);
      if (below > 1) self(self, frame - 100, below);
      if (size > below + 2) self(self, frame - 100, size - 1 - below);
      if (m.open(0) != 0) timed.leave(m.key(0, frame), now);
    };
    sort(sort, 100'000, 100'000);
    EXPECT_EQ(m.open(0), 0u);
    Told t = told(m.loop(0), static_cast<double>(now),
                  static_cast<double>(m.loop(0)[sampler::kLoopEntries]));
    EXPECT_LT(m.timed(0), sampler::LoopPace::kMostTimes * m.records);
    close += std::abs(t.off) < 0.02 ? 1 : 0;
  }
  EXPECT_GT(close, 18);
}

// An execution that begins while all are recorded, and ends when few are, keeps its own weight:
// chance must not decide how much of it counts.
TEST_F(LoopRecords, what_was_drawn_at_a_lower_level_is_part_of_a_record) {
  constexpr uint64_t kLong = 30'000, kShort = 4'000;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Method m;
    m.records = 64;
    LoopTimer timed;
    timed.seed(seed);
    uint64_t now = 0;
    ASSERT_TRUE(due(m, 0));
    timed.enter(m.key(0, 1000), now);
    auto below = [&](uint64_t frame, uint64_t cycles) {
      if (due(m, 0)) timed.enter(m.key(0, frame), now);
      now += cycles;
      if (m.open(0) != 0) timed.leave(m.key(0, frame), now);
    };
    for (uint64_t n = 0; n < kShort; ++n) below(900, 10);
    now += kLong;
    timed.leave(m.key(0, 1000), now);
    uint32_t level = sampler::LoopPace::of(m.loop(0)).level;
    EXPECT_GT(level, 4u);
    EXPECT_NEAR(static_cast<double>(m.loop(0)[sampler::kLoopCycles] << level),
                kLong + 10.0 * kShort, 0.03 * (kLong + 10.0 * kShort));
  }
}

}  // namespace
}  // namespace uptier::test::loop_records_test
