// Loop timers: each execution is paired with its own exit, whatever other entries are left over.
#include "sampler/loop_timer.h"

#include <gtest/gtest.h>
#include <x86intrin.h>

#include <memory>
#include <span>
#include <vector>

#include "sampler/loop_pace.h"
#include "tests/support/loop_timer_fixture.h"

namespace uptier::test::loop_timer_test {
namespace {

using sampler::LoopKey;
using sampler::LoopTimer;

using Method = TimedMethod;
class LoopTimers : public LoopTimerTest {};

TEST_F(LoopTimers, inclusive_and_exclusive_cycles_of_nested_loops) {
  enter(a, 0, 1000);
  spin(20'000);
  for (int i = 0; i < 3; ++i) {
    enter(a, 1, 1000);
    spin(10'000);
    a.loop(1)[sampler::kLoopIterations] += 5;
    leave(a, 1, 1000);
  }
  enter(b, 0, 900);  // in a callee
  spin(30'000);
  leave(b, 0, 900);
  leave(a, 0, 1000);
  EXPECT_EQ(timer.depth(), 0u);
  uint64_t outer = a.loop(0)[sampler::kLoopCycles], inner = a.loop(1)[sampler::kLoopCycles];
  uint64_t callee = b.loop(0)[sampler::kLoopCycles];
  EXPECT_GE(inner, 30'000u);
  EXPECT_GE(callee, 30'000u);
  EXPECT_GE(outer, 20'000 + inner + callee);
  EXPECT_EQ(a.loop(0)[sampler::kLoopExclusive], outer - inner - callee);
  EXPECT_EQ(a.loop(1)[sampler::kLoopExclusive], inner);
  EXPECT_EQ(a.timed(1), 3u);
  EXPECT_EQ(a.loop(1)[sampler::kLoopTimedIterations], 15u);
  EXPECT_EQ(a.loop(0)[sampler::kLoopSquaresLow], outer * outer);
}

TEST_F(LoopTimers, keeps_at_most_its_records_between_flushes) {
  a.records = 100;
  uint64_t before = 0, now = 0;
  for (int flush = 1; flush <= 8; ++flush) {
    for (int i = 0; i < 20'000; ++i) {
      execute(a, 0, now, 100);
      ASSERT_LE(a.timed(0) - before, 101u);
    }
    EXPECT_GE(a.timed(0) - before, 25u);
    before = a.timed(0);
    sampler::rearm_loop(a.loop(0));
  }
}

TEST_F(LoopTimers, an_exit_without_an_entry_is_nothing) {
  leave(a, 0, 1000);
  enter(a, 0, 1000);
  leave(a, 1, 1000);
  leave(b, 0, 1000);
  EXPECT_EQ(timer.depth(), 1u);
  leave(a, 0, 1000);
  EXPECT_EQ(a.timed(0), 1u);
  EXPECT_EQ(a.timed(1) + b.timed(0), 0u);
}

TEST_F(LoopTimers, entries_of_frames_that_are_gone_are_dropped) {
  enter(a, 0, 1000);
  enter(b, 0, 900);
  enter(b, 1, 900);  // it trapped, or moved to another copy
  leave(a, 0, 1000);
  EXPECT_EQ(timer.depth(), 0u);
  EXPECT_EQ(a.timed(0), 1u);
  EXPECT_EQ(b.timed(0) + b.timed(1), 0u);
  EXPECT_EQ(b.open(0) + b.open(1), 0u);
  EXPECT_EQ(timer.losses().stale, 2u);
}

TEST_F(LoopTimers, another_method_in_the_same_frame_ends_what_was_there) {
  enter(a, 0, 1000);
  enter(b, 0, 1000);
  leave(b, 0, 1000);
  leave(a, 0, 1000);
  EXPECT_EQ(b.timed(0), 1u);
  EXPECT_EQ(a.timed(0), 0u);
}

TEST_F(LoopTimers, the_same_function_afresh_ends_what_was_there) {
  enter(a, 0, 1000, true);
  enter(a, 1, 1000);
  enter(a, 0, 1000, true);
  EXPECT_EQ(timer.depth(), 1u);
  leave(a, 1, 1000);
  leave(a, 0, 1000);
  EXPECT_EQ(a.timed(0), 1u);
  EXPECT_EQ(a.timed(1), 0u);
  enter(a, 1, 1000);  // the frame left this copy, and the call returned from another one
  enter(a, 0, 1000, true);
  EXPECT_EQ(timer.depth(), 1u);
}

TEST_F(LoopTimers, entering_again_forgets_the_execution_whose_exit_was_not_seen) {
  uint64_t now = 0;
  auto enter_now = [&](int l) {
    ASSERT_TRUE(due(a, l));
    timer.enter(a.key(l, 1000), now);
  };
  enter_now(0);
  enter_now(1);
  now += 50'000;
  enter_now(0);
  timer.leave(a.key(0, 1000), now);
  EXPECT_EQ(a.timed(0), 1u);
  EXPECT_LT(a.loop(0)[sampler::kLoopCycles], 50'000u);
  EXPECT_EQ(a.open(1), 0u);
}

TEST_F(LoopTimers, what_arrives_from_another_copy_is_not_timed) {
  enter(a, 2, 1100);  // an outer frame of the same method
  enter(a, 0, 1000);
  enter(a, 1, 1000);
  timer.arrive(a.slab, 1000);
  leave(a, 1, 1000);
  leave(a, 0, 1000);
  EXPECT_EQ(a.timed(0) + a.timed(1), 0u);
  leave(a, 2, 1100);
  EXPECT_EQ(a.timed(2), 0u);  // its iterations are unknown
  EXPECT_EQ(timer.losses().spoiled, 1u);
}

TEST_F(LoopTimers, what_stale_entries_knew_of_their_children_passes_on) {
  enter(a, 0, 1000);
  enter(b, 0, 900);
  enter(b, 1, 900);
  spin(30'000);
  leave(b, 1, 900);
  uint64_t inner = b.loop(1)[sampler::kLoopCycles];
  leave(a, 0, 1000);  // b's loop 0 was never left
  EXPECT_EQ(a.loop(0)[sampler::kLoopCycles] - a.loop(0)[sampler::kLoopExclusive], inner);
}

TEST_F(LoopTimers, recursion_gives_each_execution_its_own_iterations) {
  uint64_t& iterations = a.loop(0)[sampler::kLoopIterations];
  auto run = [&](auto& self, uint64_t frame, int depth) -> void {
    enter(a, 0, frame);
    for (int i = 0; i < 3; ++i) {
      ++iterations;
      if (depth > 0) self(self, frame - 100, depth - 1);
    }
    leave(a, 0, frame);
  };
  run(run, 10'000, 2);  // 1 + 3 + 9 executions
  EXPECT_EQ(a.timed(0), 13u);
  EXPECT_EQ(a.loop(0)[sampler::kLoopTimedIterations], 39u);
  EXPECT_EQ(iterations, 39u);
}

// While an execution is on the stack, each further entry is seen: no iteration is credited twice.
TEST_F(LoopTimers, recursion_is_followed_where_few_executions_are_drawn) {
  a.records = 64;
  uint64_t& iterations = a.loop(0)[sampler::kLoopIterations];
  uint64_t now = 0;
  auto run = [&](auto& self, uint64_t frame, int depth) -> void {
    if (due(a, 0)) timer.enter(a.key(0, frame), now);
    for (int i = 0; i < 3; ++i) {
      ++iterations;
      now += 10;
      if (depth > 0) self(self, frame - 100, depth - 1);
    }
    timer.leave(a.key(0, frame), now);
  };
  for (int i = 0; i < 20; ++i) run(run, 10'000, 5);
  EXPECT_EQ(timer.depth(), 0u);
  EXPECT_EQ(timer.losses().spoiled, 0u);
  EXPECT_EQ(a.open(0), 0u);
  EXPECT_GT(sampler::LoopPace::of(a.loop(0)).level, 3u);
  EXPECT_LT(a.timed(0), 64u);
  // Parts of a record may already count an iteration, but not yet an execution.
  EXPECT_GE(a.loop(0)[sampler::kLoopTimedIterations], 3 * a.timed(0));
  EXPECT_LT(a.loop(0)[sampler::kLoopTimedIterations], 3 * a.timed(0) + 3);
}

// The cycles of an inner execution of the site are its own: the sum of all equals the time of the
// outermost.
TEST_F(LoopTimers, recursion_is_timed_once) {
  uint64_t now = 0, &cycles = a.loop(0)[sampler::kLoopCycles];
  auto run = [&](auto& self, uint64_t frame, int depth) -> void {
    if (due(a, 0)) timer.enter(a.key(0, frame), now);
    for (int i = 0; i < 2; ++i) {
      now += 100;
      if (depth > 0) self(self, frame - 100, depth - 1);
    }
    timer.leave(a.key(0, frame), now);
  };
  run(run, 10'000, 5);  // 63 executions of 200 cycles
  EXPECT_EQ(a.timed(0), 63u);
  EXPECT_EQ(cycles, now);
  EXPECT_EQ(cycles, 63u * 200);
  EXPECT_EQ(a.loop(0)[sampler::kLoopSquaresLow], 63u * 200 * 200);
}

// Probes add a hundred cycles around each timed inner execution. A recorded outer execution must
// count its time without them, and an inner one its own time.
TEST_F(LoopTimers, what_is_recorded_of_an_outer_loop_holds_no_timed_inner_ones) {
  constexpr uint64_t kInner = 50, kRounds = 12, kProbe = 100;
  a.records = 256;
  uint64_t now = 0;
  for (int n = 0; n < 20'000; ++n) {
    if (due(a, 0)) timer.enter(a.key(0, 1000), now);
    for (uint64_t i = 0; i < kRounds; ++i) {
      if (due(a, 1)) timer.enter(a.key(1, 1000), now);
      now += kInner;
      if (a.open(1) == 0) continue;
      timer.leave(a.key(1, 1000), now);
      now += kProbe;
    }
    if (a.open(0) != 0) timer.leave(a.key(0, 1000), now);
    if ((n & (n + 1)) == 0) {
      for (int l : {0, 1}) sampler::rearm_loop(a.loop(l));
    }
  }
  auto mean = [&](int l) {
    return static_cast<double>(a.loop(l)[sampler::kLoopCycles]) / static_cast<double>(a.timed(l));
  };
  EXPECT_NEAR(mean(1), kInner, 0.05);
  EXPECT_GT(a.timed(1), 1000u) << "each has its turn";
  EXPECT_GT(a.timed(0), 1000u);
  EXPECT_NEAR(mean(0), kInner * kRounds, 0.02 * kInner * kRounds);
}

// Here each probe takes a different time, as do probes that record or read a clock.
TEST_F(LoopTimers, what_probes_take_is_no_time_of_what_lies_around_them) {
  uint64_t now = 0, random = 5;
  auto probe = [&](auto call) {
    uint64_t from = now;
    call(from);
    now += 100 + (sampler::next_random(random) >> 52);
    *timer.spend(from) += now;
  };
  for (int n = 0; n < 60; ++n) {
    if (due(a, 0)) probe([&](uint64_t at) { timer.enter(a.key(0, 1000), at); });
    for (int i = 0; i < 10; ++i) {
      now += 7;
      b.records = i % 2 == 0 ? 100 : 0;  // timed, or only counted
      if (due(b, i % 2)) probe([&](uint64_t at) { timer.enter(b.key(i % 2, 900), at); });
      now += 30;
      if (b.open(i % 2) != 0) probe([&](uint64_t at) { timer.leave(b.key(i % 2, 900), at); });
    }
    probe([&](uint64_t at) { timer.leave(a.key(0, 1000), at); });
  }
  EXPECT_EQ(a.loop(0)[sampler::kLoopCycles], a.timed(0) * 370);
  EXPECT_EQ(b.loop(0)[sampler::kLoopCycles], b.timed(0) * 30);
  EXPECT_GT(a.timed(0), 7u);
  EXPECT_GT(b.timed(0), 60u);
}

TEST_F(LoopTimers, a_loop_that_is_only_counted_is_never_drawn) {
  a.records = 0;
  for (int i = 0; i < 1000; ++i) {
    if (due(a, 0)) { EXPECT_FALSE(timer.enter(a.key(0, 1000), __rdtsc())); }
    leave(a, 0, 1000);
  }
  EXPECT_EQ(a.timed(0) + a.open(0) + timer.depth(), 0u);
  EXPECT_EQ(a.loop(0)[sampler::kLoopEntries], 1000u);
}

TEST_F(LoopTimers, an_exit_that_was_not_seen_is_noticed_at_the_next_entry_drawn_or_not) {
  while (sampler::LoopPace::of(a.loop(0)).level < 10 || a.loop(0)[sampler::kLoopState] == 0) {
    enter(a, 0, 1000);
    leave(a, 0, 1000);
  }
  uint64_t lost = timer.losses().stale, entries = 0;
  for (; a.open(0) == 0; ++entries) {
    enter(a, 0, 1000);
    if (a.open(0) == 0) leave(a, 0, 1000);
  }
  EXPECT_GT(entries, 1u);
  a.loop(0)[sampler::kLoopState] += 1000;  // no execution is drawn for a while
  enter(a, 0, 1000);
  EXPECT_EQ(timer.losses().stale, lost + 1);
  EXPECT_EQ(a.open(0), 0u);
  EXPECT_EQ(timer.depth(), 0u);
}

// ---- Simulated time ---------------------------------------------------------------------------

uint64_t fake_cpu_ns = 0;

LoopTimer::CpuClock fake_clock() {
  return {[]() noexcept { return fake_cpu_ns; }, uint64_t{2} << 32};  // 2 cycles per ns
}

TEST_F(LoopTimers, time_away_from_the_processor_is_no_time_of_the_loop) {
  fake_cpu_ns = 0;
  timer.set_clock(fake_clock(), 0);
  uint64_t now = 0;
  // An execution that runs for `ran` cycles, waits for `away`, then ends.
  auto execution = [&](uint64_t ran, uint64_t away) {
    uint64_t before = a.loop(0)[sampler::kLoopCycles];
    if (due(a, 0)) timer.enter(a.key(0, 1000), now);
    now += ran + away;
    fake_cpu_ns += ran / 2;
    timer.leave(a.key(0, 1000), now);
    return a.loop(0)[sampler::kLoopCycles] - before;
  };
  EXPECT_EQ(execution(1000, 0), 1000u);
  EXPECT_EQ(execution(1000, 9'000'000), 1000u);
  execution(100'000, 0);
  fake_cpu_ns -= 2'000;  // the kernel's account ends slightly earlier
  EXPECT_LT(execution(1000, 9'000'000), 1000u);
  for (int i = 0; i < 10; ++i) execution(1000, 0);
  now += 2'500'000;  // the thread was away between two executions, without a reading since
  EXPECT_LT(execution(1000, 1'000'000), 1000u) << "it is usually as short as this";
  EXPECT_EQ(execution(1000, 190'000), 1'000u);
  EXPECT_EQ(execution(1000, 5'000), 6'000u) << "too short to ask";
  EXPECT_EQ(execution(10'000'000, 0), 9'995'000u) << "it is taken off the next that is asked about";
  EXPECT_EQ(execution(10'000'000, 30'000'000), 10'000'000u);
  now += 5'000'000;  // the thread was away between two executions
  EXPECT_EQ(execution(400'000, 0), 400'000u);
  EXPECT_EQ(execution(400'000, 3'000'000), 400'000u);
}

TEST_F(LoopTimers, time_away_within_a_probe_is_taken_off_once) {
  fake_cpu_ns = 0;
  timer.set_clock(fake_clock(), 0);
  uint64_t now = 0;
  auto ran = [&](uint64_t cycles) {
    now += cycles;
    fake_cpu_ns += cycles / 2;
  };
  ASSERT_TRUE(due(a, 0));
  timer.enter(a.key(0, 1000), now);
  ran(400'000);
  ASSERT_TRUE(due(a, 2));
  timer.enter(a.key(2, 1000), now);
  uint64_t from = now;
  now += 5'000'000;
  *timer.spend(from) += now;
  ran(100'000);
  timer.leave(a.key(2, 1000), now);
  ran(500'000);
  timer.leave(a.key(0, 1000), now);
  EXPECT_EQ(a.loop(2)[sampler::kLoopCycles], 100'000u);
  EXPECT_EQ(a.loop(0)[sampler::kLoopCycles], 1'000'000u);
}

// A program of nested and recursive loops with its own timer; executions have different lengths, so
// that each record can be recognized.
class Timed {
 public:
  explicit Timed(bool dual) { timer_.set_dual(dual); }

  void run() {
    for (int flush = 1; flush <= 6; ++flush) {
      for (int i = 0; i < 3'000; ++i) outer();
      for (int l : {0, 1, 2}) sampler::rearm_loop(method_.loop(l));
    }
  }
  std::span<const uint64_t> words(int l) {
    return {method_.loop(l) + sampler::kLoopTimed, sampler::kLoopState - sampler::kLoopTimed};
  }
  uint64_t* loop(int l) { return method_.loop(l); }
  uint64_t truth(int l) const { return truth_[l]; }

 private:
  void enter(int l, uint64_t frame) {
    uint64_t* w = method_.loop(l);
    ++w[sampler::kLoopEntries];
    if (static_cast<int64_t>(--w[sampler::kLoopState]) >= 0) return;
    timer_.enter(method_.key(l, frame), now_);
  }
  void leave(int l, uint64_t frame) {
    if (method_.open(l) != 0) timer_.leave(method_.key(l, frame), now_);
  }
  void spend(int l) {
    method_.loop(l)[sampler::kLoopIterations] += 1;
    now_ += 10 + (sampler::next_random(random_) >> 58);
  }
  void recurse(uint64_t frame, int depth) {
    enter(2, frame);
    spend(2);
    if (depth != 0) recurse(frame - 100, depth - 1);
    leave(2, frame);
  }
  void outer() {
    uint64_t from = now_;
    enter(0, 1000);
    for (int i = 0; i < 5; ++i) {
      spend(0);
      uint64_t inner = now_;
      enter(1, 1000);
      spend(1);
      leave(1, 1000);
      truth_[1] += now_ - inner;
    }
    uint64_t before = now_;
    recurse(900, 3);
    truth_[2] += now_ - before;
    leave(0, 1000);
    truth_[0] += now_ - from;
  }

  LoopTimer timer_;
  Method method_;
  uint64_t now_ = 0, random_ = 7;
  uint64_t truth_[3] = {};
};

TEST(LoopTimersDual, records_what_the_pace_would_and_sums_up_every_execution) {
  Timed paced(false), dual(true);
  paced.run();
  dual.run();
  for (int l : {0, 1, 2}) {
    std::span<const uint64_t> want = paced.words(l), got = dual.words(l);
    EXPECT_EQ(std::vector(got.begin(), got.end()), std::vector(want.begin(), want.end())) << l;
    EXPECT_LT(want[0], dual.loop(l)[sampler::kLoopEntries]) << "some are only counted";
    EXPECT_EQ(dual.loop(l)[sampler::kLoopAllTimed], dual.loop(l)[sampler::kLoopEntries]) << l;
    EXPECT_EQ(dual.loop(l)[sampler::kLoopAllCycles], dual.truth(l)) << l;
    EXPECT_EQ(paced.loop(l)[sampler::kLoopAllTimed], 0u);
  }
  EXPECT_TRUE(sampler::LoopPace::of(dual.loop(0)).shares);
}

// Drawn as if the inner loops were timed too, although they are not at present.
TEST_F(LoopTimers, in_dual_mode_loops_that_hold_counted_ones_are_drawn_as_if_these_were_timed) {
  timer.set_dual(true);
  b.records = 0;
  uint64_t now = 0;
  for (int n = 0; n < 1000; ++n) {
    ASSERT_TRUE(due(a, 0)) << "each is seen";
    timer.enter(a.key(0, 1000), now);
    for (int i = 0; i < 20; ++i) {
      if (due(b, 0)) timer.enter(b.key(0, 900), now);
      now += 10;
    }
    timer.leave(a.key(0, 1000), now);
    execute(a, 1, now, 10);
  }
  EXPECT_TRUE(sampler::LoopPace::of(a.loop(0)).shares);
  EXPECT_FALSE(sampler::LoopPace::of(a.loop(1)).shares);
  EXPECT_EQ(b.timed(0) + b.loop(0)[sampler::kLoopAllTimed], 0u);
  EXPECT_EQ(a.loop(0)[sampler::kLoopAllTimed], 1000u);
}

TEST_F(LoopTimers, a_full_stack_refuses_counts_and_recovers) {
  uint64_t frame = 1'000'000;
  for (uint32_t i = 0; i < LoopTimer::kDepth; ++i) enter(a, 0, frame -= 100);
  enter(b, 0, frame - 100);
  leave(b, 0, frame - 100);
  EXPECT_EQ(timer.losses().full, 1u);
  EXPECT_EQ(b.timed(0), 0u);
  leave(a, 0, frame);
  EXPECT_EQ(a.timed(0), 1u);
  enter(a, 0, frame);
  // Stale entries that no outer frame ever clears must not stay forever.
  for (uint32_t i = 0; i < LoopTimer::kPatience + 2; ++i) {
    enter(b, 0, frame - 200);
    enter(b, 1, frame - 300);
  }
  EXPECT_LT(timer.depth(), 3u);
  timer.unwind(UINT64_MAX);
  EXPECT_EQ(timer.depth(), 0u);
  EXPECT_EQ(a.open(0) + b.open(0) + b.open(1), 0u);
}

TEST_F(LoopTimers, costs_are_measured_and_subtracted) {
  LoopTimer::Costs c = LoopTimer::measure();
  EXPECT_GT(c.inner, 0u);
  EXPECT_GE(c.outer, c.inner);
  EXPECT_LT(c.outer, 20'000u);
  timer.set_costs(c);
  a.records = 1000;
  // A loop that contains only 200 probed empty loops has almost no cycles of its own.
  uint64_t best = UINT64_MAX;
  for (int round = 0; round < 50; ++round) {
    timer.set_costs(c = LoopTimer::measure());  // the machine may have changed since
    uint64_t before = a.loop(0)[sampler::kLoopExclusive];
    enter(a, 0, 1000);
    for (int i = 0; i < 200; ++i) {
      enter(a, 1, 1000);
      leave(a, 1, 1000);
    }
    leave(a, 0, 1000);
    sampler::rearm_loop(a.loop(1));
    best = std::min(best, a.loop(0)[sampler::kLoopExclusive] - before);
  }
  EXPECT_LT(best, 200 * c.outer / 2);
}

}  // namespace
}  // namespace uptier::test::loop_timer_test
