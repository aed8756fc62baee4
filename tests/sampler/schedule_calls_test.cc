#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "sampler/schedule.h"

namespace uptier::sampler::schedule_calls_test {
namespace {

constexpr GapKind kKinds[] = {GapKind::kRandom, GapKind::kFixed, GapKind::kPrime};

// One thread that calls one method through a stub.
struct Caller {
  explicit Caller(Schedule s, uint64_t seed = 1) : schedule(s), random(seed) {}

  CallEvent call() {
    ++calls;
    if (--state.call_countdown >= 0) return {};
    return slow();
  }
  // Makes all calls up to the next event in one step.
  CallEvent call_until_event() {
    calls += static_cast<uint64_t>(state.call_countdown) + 1;
    state.call_countdown = -1;
    return slow();
  }
  CallEvent slow() {
    ++events;
    CallEvent e = call_event(state, schedule, random);
    samples += e.sample;
    if (e.flush) flushes.push_back(calls);
    return e;
  }

  Schedule schedule;
  uint64_t random;
  MethodState state;
  uint64_t calls = 0;
  uint64_t events = 0;
  uint64_t samples = 0;
  std::vector<uint64_t> flushes;
};

std::vector<uint64_t> flush_points(Schedule s, size_t count) {
  Caller c(s);
  while (c.flushes.size() < count && c.calls < 5'000'000) c.call();
  return c.flushes;
}

TEST(ScheduleCalls, number_of_calls_is_known_at_every_moment) {
  for (GapKind kind : kKinds) {
    for (uint32_t interval = 1; interval <= 64; ++interval) {
      Caller c(Schedule::make(kind, interval, 32), interval);
      ASSERT_EQ(calls_so_far(c.state), 0u);
      for (uint64_t n = 1; n <= 100'000; ++n) {
        CallEvent e = c.call();
        ASSERT_EQ(calls_so_far(c.state), n) << "interval " << interval;
        ASSERT_EQ(e.call, e.sample || e.flush ? n : e.call) << "interval " << interval;
      }
    }
  }
}

TEST(ScheduleCalls, event_is_taken_only_where_something_is_due_and_now_and_then_to_look_around) {
  for (GapKind kind : kKinds) {
    for (uint32_t interval : {1u, 2u, 7u, 16u, 1000u}) {
      Caller c(Schedule::make(kind, interval, 32), interval);
      uint64_t last = 0;  // number of the last event
      for (uint64_t n = 1; n <= 50'000; ++n) {
        uint64_t before = c.events;
        CallEvent e = c.call();
        if (c.events == before) continue;
        bool idle = n != 1 && !e.sample && !e.flush;  // the first call sets the countdown
        if (idle) { ASSERT_EQ(n - last, std::max(last / kRecheckPart, kRecheckFirst)); }
        last = n;
      }
    }
  }
}

TEST(ScheduleCalls, flushes_come_at_32_64_128_to_the_call) {
  for (GapKind kind : kKinds) {
    for (uint32_t interval : {1u, 3u, 16u, 1000u, 1u << 30}) {
      std::vector<uint64_t> expected;
      for (uint64_t at = 32; at <= uint64_t{32} << 15; at *= 2) expected.push_back(at);
      EXPECT_EQ(flush_points(Schedule::make(kind, interval, 32), 16), expected) << interval;
    }
  }
}

TEST(ScheduleCalls, first_flush_and_growth_are_options) {
  struct Row {
    uint64_t first;
    double growth;
    std::vector<uint64_t> expected;
  };
  const Row rows[] = {
      {10, 1, {10, 20, 30, 40, 50, 60}},
      {1, 1, {1, 2, 3, 4, 5, 6}},
      {32, 1.5, {32, 48, 72, 108, 162, 243, 364, 546, 819}},
      {1, 1.5, {1, 2, 3, 4, 6, 9, 13, 19}},
      {7, 10, {7, 70, 700, 7000, 70000}},
      {100, 1.001, {100, 101, 102, 103}},
  };
  for (const Row& row : rows) {
    Schedule s = Schedule::make(GapKind::kRandom, 16, 32);
    s.flush_first = row.first;
    s.flush_growth = row.growth;
    EXPECT_EQ(flush_points(s, row.expected.size()), row.expected) << row.growth;
  }
}

TEST(ScheduleCalls, flush_point_lies_later_than_the_one_before_and_ends_at_the_largest_number) {
  for (double growth : {1.0, 1.0000001, 1.5, 2.0, 1024.0}) {
    for (uint64_t at : {uint64_t{1}, uint64_t{32}, uint64_t{1} << 40, uint64_t{1} << 62}) {
      EXPECT_GT(next_flush_point(at, 1, growth), at) << growth;
    }
  }
  EXPECT_EQ(next_flush_point(uint64_t{1} << 62, 32, 2), UINT64_MAX);
  EXPECT_EQ(next_flush_point(UINT64_MAX, 32, 2), UINT64_MAX);
}

TEST(ScheduleCalls, random_gaps_sample_the_share_of_the_interval_within_4_sigma) {
  for (uint32_t interval : {2u, 7u, 16u, 64u, 1000u}) {
    constexpr double kCalls = 2'000'000;
    Caller c(Schedule::make(GapKind::kRandom, interval, 32), interval);
    while (c.calls < kCalls) c.call();
    double p = 1.0 / interval;
    EXPECT_NEAR(static_cast<double>(c.samples), kCalls * p, 4 * std::sqrt(kCalls * p * (1 - p)));
  }
}

TEST(ScheduleCalls, fixed_and_prime_gaps_sample_every_nth_call_exactly) {
  for (GapKind kind : {GapKind::kFixed, GapKind::kPrime}) {
    for (uint32_t interval : {1u, 2u, 7u, 16u, 64u, 1000u}) {
      uint32_t step = kind == GapKind::kPrime ? nearest_prime(interval) : interval;
      Caller c(Schedule::make(kind, interval, 32));
      while (c.calls < 100'000) {
        CallEvent e = c.call();
        ASSERT_EQ(e.sample, c.calls % step == 0) << interval << " at call " << c.calls;
      }
    }
  }
}

TEST(ScheduleCalls, first_call_is_as_likely_sampled_as_any_other) {
  constexpr int kThreads = 64'000;
  std::vector<double> sampled(8);
  uint64_t seed = 77;
  for (int t = 0; t < kThreads; ++t) {
    Caller c(Schedule::make(GapKind::kRandom, 16, 32), next_random(seed));
    for (double& n : sampled) n += c.call().sample;
  }
  double p = 1.0 / 16;
  for (double n : sampled) EXPECT_NEAR(n, kThreads * p, 4 * std::sqrt(kThreads * p * (1 - p)));
}

TEST(ScheduleCalls, sample_and_flush_may_be_due_at_the_same_call) {
  Caller c(Schedule::make(GapKind::kFixed, 16, 32));
  while (c.calls < 31) c.call();
  uint64_t events = c.events;
  CallEvent e = c.call();
  EXPECT_EQ(c.events, events + 1);
  EXPECT_EQ(e.call, 32u);
  EXPECT_TRUE(e.sample);
  EXPECT_TRUE(e.flush);
  for (int n = 33; n < 48; ++n) ASSERT_EQ(c.call().call, 0u) << "neither comes twice, call " << n;
  EXPECT_TRUE(c.call().sample);
}

TEST(ScheduleCalls, gaps_beyond_the_countdown_are_made_of_several) {
  constexpr uint64_t kGap = uint64_t{1} << 31;
  Schedule s = Schedule::make(GapKind::kFixed, static_cast<uint32_t>(kGap), 32);
  s.flush_first = uint64_t{5} << 31;
  s.flush_growth = 1;
  Caller c(s);
  std::vector<uint64_t> sampled;
  c.call();
  while (c.calls < 20 * kGap) {
    CallEvent e = c.call_until_event();
    ASSERT_EQ(e.call, c.calls);
    ASSERT_EQ(calls_so_far(c.state), c.calls);
    if (e.sample) sampled.push_back(c.calls);
  }
  std::vector<uint64_t> every(20);
  for (size_t i = 0; i < every.size(); ++i) every[i] = (i + 1) * kGap;
  EXPECT_EQ(sampled, every);
  EXPECT_EQ(c.flushes, (std::vector<uint64_t>{5 * kGap, 10 * kGap, 15 * kGap, 20 * kGap}));
}

TEST(ScheduleCalls, flush_points_beyond_the_countdown_are_met_to_the_call) {
  Schedule s = Schedule::make(GapKind::kFixed, 16, 32);
  s.sample_calls = false;
  s.flush_growth = 1024;
  Caller c(s);
  c.call();
  while (c.flushes.size() < 5 && c.events < uint64_t{1} << 26) {
    c.call_until_event();
    ASSERT_EQ(calls_so_far(c.state), c.calls);
  }
  EXPECT_EQ(c.flushes, (std::vector<uint64_t>{32, uint64_t{1} << 15, uint64_t{1} << 25,
                                              uint64_t{1} << 35, uint64_t{1} << 45}));
}

TEST(ScheduleCalls, without_samples_calls_are_counted_and_flushed_only) {
  Schedule s = Schedule::make(GapKind::kRandom, 2, 32);
  s.sample_calls = false;
  Caller c(s);
  while (c.calls < 1024) {
    ASSERT_FALSE(c.call().sample);
    ASSERT_EQ(calls_so_far(c.state), c.calls);
  }
  EXPECT_EQ(c.flushes, (std::vector<uint64_t>{32, 64, 128, 256, 512, 1024}));
  EXPECT_EQ(c.events, 7u) << "six flushes and the first call";
}

TEST(ScheduleCalls, samples_may_be_switched_off_and_on_between_events) {
  Caller c(Schedule::make(GapKind::kRandom, 16, 32));
  uint64_t sampled_on = 0;
  for (int round = 0; round < 40; ++round) {
    c.schedule.sample_calls = round % 2 == 0;
    uint64_t before = c.samples;
    for (int n = 0; n < 5000; ++n) {
      c.call();
      ASSERT_EQ(calls_so_far(c.state), c.calls);
    }
    if (round % 2 == 0) {
      sampled_on += c.samples - before;
    } else {
      ASSERT_EQ(c.samples, before) << "round " << round;
    }
  }
  EXPECT_GT(sampled_on, 0u);
  std::vector<uint64_t> expected;
  for (uint64_t at = 32; at <= c.calls; at *= 2) expected.push_back(at);
  EXPECT_EQ(c.flushes, expected);
}

TEST(CallPlan, says_the_same_as_the_countdown) {
  for (GapKind kind : kKinds) {
    for (uint32_t interval : {1u, 2u, 16u, 64u}) {
      Schedule s = Schedule::make(kind, interval, 32);
      Caller c(s, 7);
      uint64_t random = 7;
      CallPlan plan{s.calls.draw(random), s.flush_first};
      for (uint64_t n = 1; n <= 20'000; ++n) {
        bool due = n == plan.next(s);
        CallEvent expected = due ? plan.take(n, s, random) : CallEvent{};
        CallEvent actual = c.call();
        ASSERT_EQ(actual.sample, expected.sample) << n;
        ASSERT_EQ(actual.flush, expected.flush) << n;
      }
    }
  }
}

TEST(CallPlan, late_call_takes_what_was_due_once_and_moves_past_it) {
  Schedule s = Schedule::make(GapKind::kFixed, 16, 32);
  uint64_t random = 1;
  CallPlan plan{16, 32};
  CallEvent e = plan.take(1000, s, random);
  EXPECT_EQ(e.call, 1000u);
  EXPECT_TRUE(e.sample);
  EXPECT_TRUE(e.flush);
  EXPECT_EQ(plan.next_sample, 1016u);
  EXPECT_EQ(plan.next_flush, 1024u);
  EXPECT_EQ(plan.next(s), 1016u);
  s.sample_calls = false;
  EXPECT_EQ(plan.next(s), 1024u);
}

TEST(CallPlan, call_at_which_nothing_is_due_changes_nothing) {
  Schedule s = Schedule::make(GapKind::kRandom, 16, 32);
  uint64_t random = 1;
  CallPlan plan{16, 32};
  CallEvent e = plan.take(15, s, random);
  EXPECT_FALSE(e.sample);
  EXPECT_FALSE(e.flush);
  EXPECT_EQ(plan.next_sample, 16u);
  EXPECT_EQ(plan.next_flush, 32u);
  EXPECT_EQ(random, 1u);
}

// A program whose calls do 16 different things in turn: returns the overlap of their shares among
// the samples with the true 1/16 each.
double overlap_of_periodic_program(GapKind kind) {
  constexpr int kPeriod = 16;
  Caller c(Schedule::make(kind, 16, 32));
  std::vector<double> seen(kPeriod);
  while (c.calls < 2'000'000) {
    if (c.call().sample) seen[c.calls % kPeriod]++;
  }
  double total = std::accumulate(seen.begin(), seen.end(), 0.0);
  double overlap = 0;
  for (double n : seen) overlap += std::min(n / total, 1.0 / kPeriod);
  return overlap;
}

TEST(ScheduleCalls, fixed_gaps_alias_with_a_program_of_their_period_and_others_do_not) {
  EXPECT_DOUBLE_EQ(overlap_of_periodic_program(GapKind::kFixed), 1.0 / 16);
  EXPECT_GE(overlap_of_periodic_program(GapKind::kRandom), 0.97);
  EXPECT_GE(overlap_of_periodic_program(GapKind::kPrime), 0.97);
}

}  // namespace
}  // namespace uptier::sampler::schedule_calls_test
