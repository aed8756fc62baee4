#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sampler/schedule.h"

namespace uptier::sampler::schedule_loops_test {
namespace {

constexpr GapKind kKinds[] = {GapKind::kRandom, GapKind::kFixed, GapKind::kPrime};
constexpr bool kPlain = false, kInstrumented = true;

// One thread in one method: the checks at loop headers as both copies emit them.
struct Looper {
  explicit Looper(Schedule s, uint64_t seed = 1) : schedule(s), random(seed) {}

  // A frame of the given copy arrives at a loop header; returns the copy in which it goes on.
  bool arrive(bool copy) {
    ++arrivals;
    bool due = copy ? ++state.loop_countdown >= 0 : --state.loop_countdown <= 0;
    if (due) copy = slow(copy);
    counted += copy;
    return copy;
  }
  bool slow(bool copy) {
    ++slow_entries;
    LoopEvent e = copy ? loop_event_instrumented(state, schedule, can_count, random)
                       : loop_event_plain(state, schedule, can_count, random);
    if (e.flush) flushes.push_back(arrivals);
    return e.instrumented;
  }
  // Runs one frame's loop; returns the copy in which it ends.
  bool loop(bool copy, uint64_t iterations) {
    for (uint64_t i = 0; i < iterations; ++i) copy = arrive(copy);
    return copy;
  }
  // Makes all arrivals of the plain copy, except the last one before the next event, in one step.
  void skip_plain() {
    if (state.loop_countdown <= 1) return;
    arrivals += static_cast<uint64_t>(state.loop_countdown) - 1;
    state.loop_countdown = 1;
  }

  Schedule schedule;
  uint64_t random;
  MethodState state;
  bool can_count = true;
  uint64_t arrivals = 0;
  uint64_t counted = 0;  // iterations in the instrumented copy
  uint64_t slow_entries = 0;
  std::vector<uint64_t> flushes;
};

// Calls of one method that loop and recurse, with a sampled call now and then.
class Program {
 public:
  Program(Looper& looper, uint64_t seed) : looper_(looper), random_(seed) {}

  void run(uint64_t arrivals) {
    until_ = arrivals;
    while (looper_.arrivals < until_) call(0);
  }
  bool mismatch() const { return mismatch_; }

 private:
  uint64_t draw(uint64_t below) { return next_random(random_) % below; }

  void call(int depth) {
    bool copy = looper_.can_count && draw(looper_.schedule.interval) == 0;
    for (uint64_t loops = draw(4); loops > 0; --loops) {
      for (uint64_t n = draw(draw(8) == 0 ? 400 : 12); n > 0; --n) {
        if (looper_.arrivals == until_) return;
        copy = looper_.arrive(copy);
        mismatch_ |= iterations_so_far(looper_.state) != looper_.arrivals;
        if (depth < 6 && draw(16) == 0) call(depth + 1);
      }
    }
  }

  Looper& looper_;
  uint64_t random_;
  uint64_t until_ = 0;
  bool mismatch_ = false;
};

TEST(ScheduleLoops, number_of_iterations_is_known_at_every_moment) {
  for (GapKind kind : kKinds) {
    for (uint32_t interval : {1u, 2u, 3u, 7u, 16u, 64u}) {
      for (uint32_t burst : {1u, 2u, 32u}) {
        Looper l(Schedule::make(kind, interval, burst), interval);
        Program p(l, interval + burst);
        p.run(100'000);
        EXPECT_FALSE(p.mismatch()) << interval << " " << burst;
      }
    }
  }
}

TEST(ScheduleLoops, share_of_the_interval_is_counted_within_4_sigma) {
  for (uint32_t interval : {2u, 3u, 7u, 16u, 64u}) {
    for (uint32_t burst : {1u, 32u}) {
      Looper l(Schedule::make(GapKind::kRandom, interval, burst), interval);
      Program(l, 5).run(uint64_t{60'000} * burst);
      double slots = static_cast<double>(l.arrivals) / burst, p = 1.0 / interval;
      EXPECT_NEAR(static_cast<double>(l.counted) / burst, slots * p,
                  4 * std::sqrt(slots * p * (1 - p)) + 1)
          << interval << " " << burst;
    }
  }
}

TEST(ScheduleLoops, stretches_and_bursts_have_their_lengths_to_the_iteration) {
  for (GapKind kind : {GapKind::kFixed, GapKind::kPrime}) {
    for (uint32_t interval : {2u, 3u, 7u, 16u}) {
      for (uint32_t burst : {1u, 5u, 32u}) {
        uint32_t step = kind == GapKind::kPrime ? nearest_prime(interval) : interval;
        Looper l(Schedule::make(kind, interval, burst));
        bool copy = kPlain;
        for (uint64_t n = 0; n < uint64_t{200} * interval * burst; ++n) {
          copy = l.arrive(copy);
          ASSERT_EQ(copy, n / burst % step == step - 1)
              << "iteration " << n << " interval " << interval << " burst " << burst;
        }
      }
    }
  }
}

TEST(ScheduleLoops, random_bursts_fill_whole_slots_also_where_frames_come_and_go) {
  constexpr uint32_t kBurst = 32;
  Looper l(Schedule::make(GapKind::kRandom, 4, kBurst));
  uint64_t random = 3;
  bool slot = false;
  uint64_t bursts = 0;
  for (uint64_t n = 0; n < 200'000; ++n) {
    bool frame = next_random(random) % 8 == 0;  // a frame in any copy
    bool copy = l.arrive(frame);
    if (n % kBurst == 0) {
      slot = copy;
      bursts += slot;
    }
    ASSERT_EQ(copy, slot) << "iteration " << n;
  }
  EXPECT_EQ(l.state.bursts, bursts);
}

TEST(ScheduleLoops, slots_are_bursts_independent_of_each_other) {
  // Fails for laws with a minimum gap: with interval 2 they alternate, and count only one half of a
  // program that alternates too.
  for (uint32_t interval : {2u, 3u, 16u}) {
    constexpr uint64_t kSlots = 200'000;
    Looper l(Schedule::make(GapKind::kRandom, interval, 1), 11);
    bool copy = kPlain, before = false;
    double bursts = 0, pairs = 0, odd = 0;
    for (uint64_t n = 0; n < kSlots; ++n) {
      copy = l.arrive(copy);
      bursts += copy;
      pairs += copy && before;
      odd += copy && n % 2 == 1;
      before = copy;
    }
    double p = 1.0 / interval;
    EXPECT_NEAR(pairs / kSlots, p * p, 4 * std::sqrt(3 * p * p / kSlots)) << interval;
    EXPECT_NEAR(odd / bursts, 0.5, 4 * 0.5 / std::sqrt(bursts)) << interval;
  }
}

TEST(ScheduleLoops, first_slot_is_as_likely_a_burst_as_any_other) {
  constexpr int kThreads = 64'000;
  std::vector<double> bursts(4);
  uint64_t seed = 5;
  for (int t = 0; t < kThreads; ++t) {
    Looper l(Schedule::make(GapKind::kRandom, 16, 2), next_random(seed));
    bool copy = kPlain;
    for (double& n : bursts) n += copy = l.loop(copy, 2);
  }
  double p = 1.0 / 16;
  for (double n : bursts) EXPECT_NEAR(n, kThreads * p, 4 * std::sqrt(kThreads * p * (1 - p)));
}

TEST(ScheduleLoops, interval_1_counts_every_iteration) {
  for (GapKind kind : kKinds) {
    Looper l(Schedule::make(kind, 1, 32));
    EXPECT_EQ(l.loop(kPlain, 1'000'000), kInstrumented);
    EXPECT_EQ(l.counted, l.arrivals);
    // At most the first arrival, the flushes, and one in 65,536 iterations.
    EXPECT_LE(l.slow_entries, 1 + l.flushes.size() + 1'000'000 / 65'536);

    Looper nested(Schedule::make(kind, 1, 32));
    Program(nested, 3).run(200'000);
    EXPECT_EQ(nested.counted, nested.arrivals);
  }
}

TEST(ScheduleLoops, sampled_call_goes_back_to_the_plain_copy_in_the_middle_of_a_stretch) {
  Looper l(Schedule::make(GapKind::kFixed, 16, 32));
  l.loop(kPlain, 100);
  EXPECT_EQ(l.arrive(kInstrumented), kPlain);
  EXPECT_EQ(iterations_so_far(l.state), 101u);
  // The stretch is over for this frame: the burst comes where it would have come without it.
  EXPECT_EQ(l.loop(kPlain, 15 * 32 - 101), kPlain);
  EXPECT_EQ(l.arrive(kPlain), kInstrumented);
}

TEST(ScheduleLoops, sampled_call_that_arrives_where_a_burst_is_due_stays) {
  Looper l(Schedule::make(GapKind::kFixed, 16, 32));
  l.loop(kPlain, 15 * 32);
  EXPECT_EQ(l.counted, 0u);
  EXPECT_EQ(l.arrive(kInstrumented), kInstrumented);
  EXPECT_EQ(l.loop(kInstrumented, 31), kInstrumented);
  EXPECT_EQ(l.arrive(kInstrumented), kPlain) << "the burst has its length";
  EXPECT_EQ(l.counted, 32u);
}

TEST(ScheduleLoops, sampled_call_may_be_the_first_arrival_of_all) {
  Looper l(Schedule::make(GapKind::kFixed, 16, 32));
  EXPECT_EQ(l.arrive(kInstrumented), kPlain);
  EXPECT_EQ(iterations_so_far(l.state), 1u);
  EXPECT_EQ(l.loop(kPlain, 15 * 32 - 1), kPlain);
  EXPECT_EQ(l.arrive(kPlain), kInstrumented);
}

TEST(ScheduleLoops, plain_frame_joins_a_burst_and_shortens_it_by_what_it_runs) {
  Looper l(Schedule::make(GapKind::kFixed, 16, 32));
  bool outer = l.loop(kPlain, 15 * 32 + 10);
  ASSERT_EQ(outer, kInstrumented);
  bool inner = l.arrive(kPlain);
  EXPECT_EQ(inner, kInstrumented);
  EXPECT_EQ(iterations_so_far(l.state), 15u * 32 + 11);
  inner = l.loop(inner, 20);
  EXPECT_EQ(inner, kInstrumented);
  EXPECT_EQ(l.arrive(outer), kInstrumented) << "the last of the 32";
  EXPECT_EQ(l.arrive(inner), kPlain);
  EXPECT_EQ(l.arrive(outer), kPlain) << "the other frame leaves at its next header";
  EXPECT_EQ(l.counted, 32u);
  EXPECT_EQ(l.state.bursts, 1u);
}

TEST(ScheduleLoops, plain_frame_may_arrive_where_a_burst_ends) {
  Looper l(Schedule::make(GapKind::kFixed, 16, 32));
  ASSERT_EQ(l.loop(kPlain, 16 * 32), kInstrumented);
  EXPECT_EQ(l.arrive(kPlain), kPlain);
  EXPECT_EQ(iterations_so_far(l.state), 16u * 32 + 1);
  EXPECT_EQ(l.counted, 32u);
}

TEST(ScheduleLoops, without_a_copy_nothing_runs_instrumented_and_the_slow_path_stays_rare) {
  for (GapKind kind : kKinds) {
    for (uint32_t interval : {1u, 2u, 16u}) {
      constexpr uint64_t kArrivals = 500'000;
      constexpr uint32_t kBurst = 32;
      Looper l(Schedule::make(kind, interval, kBurst));
      l.can_count = false;
      Program p(l, 7);
      p.run(kArrivals);
      EXPECT_FALSE(p.mismatch());
      EXPECT_EQ(l.counted, 0u);
      EXPECT_EQ(l.state.bursts, 0u);
      // Once per gap if gaps count slots; half as many again for the odds and the flushes.
      EXPECT_LT(l.slow_entries, 1.5 * kArrivals / kBurst / interval) << interval;
      EXPECT_GT(l.slow_entries, 0.5 * kArrivals / kBurst / interval) << interval;
    }
  }
}

TEST(ScheduleLoops, burst_ends_when_the_copy_goes_and_comes_back_with_it) {
  for (uint32_t interval : {1u, 16u}) {
    Looper l(Schedule::make(GapKind::kFixed, interval, 32));
    ASSERT_EQ(l.loop(kPlain, 16 * 32 - 20), kInstrumented);
    l.can_count = false;
    uint64_t counted = l.counted, entries = l.slow_entries;
    EXPECT_EQ(l.loop(kPlain, 100'000), kPlain);
    EXPECT_EQ(iterations_so_far(l.state), l.arrivals);
    EXPECT_EQ(l.counted, counted);
    EXPECT_LT(l.slow_entries - entries, 1.1 * 100'000 / 32 / interval + 5);
    l.can_count = true;
    EXPECT_EQ(l.loop(kPlain, 32), interval == 1 ? kInstrumented : kPlain);
    l.loop(kPlain, 32 * 32);
    EXPECT_GT(l.counted, counted);
    EXPECT_EQ(iterations_so_far(l.state), l.arrivals);
  }
}

TEST(ScheduleLoops, instrumented_frame_leaves_at_the_next_event_once_it_may_not_count) {
  Looper l(Schedule::make(GapKind::kFixed, 1, 32));
  ASSERT_EQ(l.loop(kPlain, 1000), kInstrumented);
  l.can_count = false;
  EXPECT_EQ(l.loop(kInstrumented, 3095), kInstrumented);
  EXPECT_EQ(l.arrive(kInstrumented), kPlain) << "the flush at 4096";
  EXPECT_EQ(l.loop(kPlain, 1000), kPlain);
  EXPECT_EQ(iterations_so_far(l.state), l.arrivals);
}

TEST(ScheduleLoops, flushes_come_at_their_points_to_the_iteration) {
  for (GapKind kind : kKinds) {
    for (uint32_t interval : {1u, 2u, 16u, 1000u, 1u << 30}) {
      for (bool can_count : {true, false}) {
        Looper l(Schedule::make(kind, interval, 32));
        l.can_count = can_count;
        Program p(l, 2);
        p.run(70'000);
        EXPECT_EQ(l.flushes, (std::vector<uint64_t>{4096, 8192, 16384, 32768, 65536})) << interval;
        EXPECT_FALSE(p.mismatch());
      }
    }
  }
}

TEST(ScheduleLoops, first_flush_and_growth_are_options) {
  struct Row {
    uint64_t first;
    double growth;
    std::vector<uint64_t> expected;
  };
  const Row rows[] = {
      {1, 2, {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}},
      {100, 1, {100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}},
      {64, 1.5, {64, 96, 144, 216, 324, 486, 729}},
      {7, 10, {7, 70, 700}},
      {1, 1.5, {1, 2, 3, 4, 6, 9, 13, 19, 28, 42, 63, 94, 141, 211, 316, 474, 711}},
  };
  for (const Row& row : rows) {
    Looper l(Schedule::make(GapKind::kRandom, 4, 32));
    l.schedule.loop_flush_first = row.first;
    l.schedule.flush_growth = row.growth;
    l.loop(kPlain, 1000);
    EXPECT_EQ(l.flushes, row.expected) << row.first << " " << row.growth;
  }
}

TEST(ScheduleLoops, flush_changes_neither_the_copy_nor_the_lengths) {
  auto copies = [](uint64_t flush_first) {
    Looper l(Schedule::make(GapKind::kRandom, 4, 32), 6);
    l.schedule.loop_flush_first = flush_first;
    l.schedule.flush_growth = 1;
    std::vector<bool> seen;
    bool copy = kPlain;
    for (int n = 0; n < 20'000; ++n) seen.push_back(copy = l.arrive(copy));
    EXPECT_EQ(l.flushes.size(), 20'000 / flush_first);
    return seen;
  };
  const std::vector<bool> undisturbed = copies(1'000'000);
  for (uint64_t first : {1u, 7u, 31u, 32u, 100u}) EXPECT_EQ(copies(first), undisturbed) << first;
}

TEST(ScheduleLoops, without_samples_loops_are_counted_and_flushed_only) {
  Looper l(Schedule::make(GapKind::kRandom, 2, 32));
  l.schedule.sample_calls = false;
  l.loop(kPlain, 10'000);
  EXPECT_EQ(l.counted, 0u);
  EXPECT_EQ(l.flushes, (std::vector<uint64_t>{4096, 8192}));
  EXPECT_EQ(l.slow_entries, 3u) << "the first arrival and the flushes";
  EXPECT_EQ(iterations_so_far(l.state), 10'000u);
}

TEST(ScheduleLoops, long_stretches_are_made_of_several_parts) {
  constexpr uint32_t kInterval = 1u << 6, kBurst = 1u << 20;
  Looper l(Schedule::make(GapKind::kFixed, kInterval, kBurst));
  l.schedule.loop_flush_first = uint64_t{1} << 40;
  bool copy = kPlain;
  while (copy == kPlain && l.slow_entries < 2000) {
    l.skip_plain();
    copy = l.arrive(copy);
    ASSERT_EQ(iterations_so_far(l.state), l.arrivals);
  }
  EXPECT_EQ(l.arrivals, uint64_t{kInterval - 1} * kBurst + 1);
  EXPECT_GE(l.slow_entries, l.arrivals >> 16) << "a loop asks for better code that often";
  EXPECT_EQ(l.loop(copy, kBurst - 1), kInstrumented);
  EXPECT_EQ(l.arrive(kInstrumented), kPlain);
}

TEST(ScheduleLoops, calls_and_iterations_are_counted_in_the_same_share) {
  for (GapKind kind : kKinds) {
    Looper l(Schedule::make(kind, 16, 32), 9);
    l.loop(kPlain, 4'000'000);
    uint64_t calls = 0, sampled = 0, random = 9;
    MethodState s;
    for (; calls < 400'000; ++calls) {
      if (--s.call_countdown < 0) sampled += call_event(s, l.schedule, random).sample;
    }
    double of_iterations = static_cast<double>(l.counted) / static_cast<double>(l.arrivals);
    double of_calls = static_cast<double>(sampled) / static_cast<double>(calls);
    EXPECT_NEAR(of_iterations / of_calls, 1, 0.05);
  }
}

// A value that an interpreter writes into its countdown is no executed iteration.
TEST(ScheduleLoops, a_countdown_that_was_wound_back_counts_nothing) {
  MethodState s{};
  s.iterations = 100;
  s.loop_gap = 32;
  s.loop_countdown = 1000;
  EXPECT_EQ(iterations_so_far(s), 100u);
}

}  // namespace
}  // namespace uptier::sampler::schedule_loops_test
