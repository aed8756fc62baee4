// Rates that change while a thread runs: estimates stay unbiased, and changes are noticed in time.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>
#include <vector>

#include "sampler/decay.h"
#include "sampler/estimate.h"
#include "sampler/fast_sample.h"
#include "sampler/reservation.h"

namespace uptier::sampler::schedule_rate_test {
namespace {

constexpr uint32_t kBurst = 8;

// One thread in one method, with slow paths as in tiering. Counters 0, 1, 2 are calls by their
// number mod 3; counters 3 .. 6 are iterations by their number mod 4.
class Guest {
 public:
  Guest(const Schedule& schedule, uint64_t seed) : schedule(schedule), random(seed) {
    rate.set(schedule.rate);
  }

  void call(uint64_t iterations) {
    truth[calls++ % 3]++;
    bool copy = --state.call_countdown < 0 && call_slow();
    if (copy) counts[(calls - 1) % 3]++;
    for (uint64_t i = 0; i < iterations; ++i) {
      bool due = copy ? ++state.loop_countdown >= 0 : --state.loop_countdown <= 0;
      if (due) copy = loop_slow(copy);
      truth[3 + arrivals % 4]++;
      counts[3 + arrivals % 4] += copy;
      ++arrivals;
    }
  }
  void final_flush() { flush(); }

  const Schedule& schedule;
  MethodRate rate;
  uint64_t random;
  MethodState state;
  uint64_t calls = 0, arrivals = 0, flushes = 0, changes = 0;
  std::function<bool()> delivers = [] { return true; };
  std::vector<uint64_t> truth = std::vector<uint64_t>(7), counts = std::vector<uint64_t>(7);
  Estimate estimate;

 private:
  bool flush() {
    ++flushes;
    if (!delivers()) return false;
    Rate in_force{state.rate};
    estimate.take(weight_of(in_force, schedule.ladder), state.sampled_calls + state.bursts, counts);
    return true;
  }
  bool call_slow() {
    Rate wanted = rate.load();
    CallEvent e = call_event(state, schedule, wanted, random);
    bool delivered = e.flush && flush();
    if (e.change && delivered) {
      ++changes;
      commit_rate(state, schedule, wanted, random, e);
    }
    if (e.sample && count_sample(state)) rate.widen(Rate{state.rate}, schedule.ladder);
    EXPECT_EQ(calls_so_far(state), calls);
    return e.sample;
  }
  bool loop_slow(bool copy) {
    Rate wanted = rate.load();
    LoopEvent e = copy ? loop_event_instrumented(state, schedule, wanted, true, random)
                       : loop_event_plain(state, schedule, wanted, true, random);
    bool delivered = e.flush && flush();
    if (e.change && delivered) {
      ++changes;
      commit_rate(state, schedule, wanted, true, random, e);
    }
    if (e.widen) rate.widen(Rate{state.rate}, schedule.ladder);
    EXPECT_EQ(iterations_so_far(state), arrivals + 1);
    return e.instrumented;
  }
};

// Sums of the errors of each estimate over many runs, in standard errors of the mean.
struct Errors {
  std::vector<double> sum = std::vector<double>(7), squares = std::vector<double>(7);
  double runs = 0, worst_relative = 0;

  void add(const Guest& g) {
    ++runs;
    for (size_t i = 0; i < 7; ++i) {
      double e = static_cast<double>(g.estimate.values()[i]) - static_cast<double>(g.truth[i]);
      sum[i] += e;
      squares[i] += e * e;
    }
  }
  void expect_none(const char* what) const {
    for (size_t i = 0; i < 7; ++i) {
      if (squares[i] == 0) continue;
      double mean = sum[i] / runs;
      double error = std::sqrt((squares[i] / runs - mean * mean) / runs);
      EXPECT_NEAR(mean / error, 0, 4) << what << ", counter " << i << ": " << mean;
    }
  }
};

Schedule make(GapKind kind = GapKind::kRandom) {
  Schedule s = Schedule::make(kind, 16, kBurst);
  s.loop_flush_first = 256;
  return s;
}

TEST(ScheduleRate, calls_are_estimated_without_bias_whenever_the_rate_changes) {
  Schedule schedule = make();
  Errors errors;
  uint64_t seed = 1, changes = 0;
  for (int run = 0; run < 20'000; ++run) {
    Guest g(schedule, next_random(seed));
    // Some flushes are not delivered; then the current rate stays in force.
    g.delivers = [&] { return next_random(seed) % 4 != 0; };
    for (int n = 0; n < 400; ++n) {
      if (next_random(seed) % 40 == 0) {
        g.rate.set(Rate::sampled(static_cast<uint32_t>(next_random(seed) % 7), kBurst));
      }
      g.call(0);
    }
    g.delivers = [] { return true; };
    g.final_flush();
    changes += g.changes;
    errors.add(g);
  }
  EXPECT_GT(changes, 60'000u);
  errors.expect_none("calls");
}

TEST(ScheduleRate, iterations_are_estimated_without_bias_whenever_the_rate_changes) {
  Schedule schedule = make();
  Errors errors;
  uint64_t seed = 2, changes = 0;
  for (int run = 0; run < 8'000; ++run) {
    Guest g(schedule, next_random(seed));
    g.delivers = [&] { return next_random(seed) % 4 != 0; };
    for (int n = 0; n < 4; ++n) {
      for (int part = 0; part < 8; ++part) {
        uint32_t rung = static_cast<uint32_t>(next_random(seed) % 5);
        g.rate.set(Rate::sampled(rung, static_cast<uint32_t>(1 + next_random(seed) % 12)));
        g.call(next_random(seed) % 120);
      }
    }
    g.delivers = [] { return true; };
    g.final_flush();
    changes += g.changes;
    // The first iterations of a sampled call are its loop's, as they come. Only calls under way at
    // a change of rate are left out, and here there are none.
    errors.add(g);
  }
  EXPECT_GT(changes, 60'000u);
  errors.expect_none("iterations");
}

TEST(ScheduleRate, decaying_rates_are_unbiased_and_take_as_many_samples_as_their_bound) {
  Schedule schedule = make();
  constexpr uint64_t kCalls = 20'000;
  uint32_t target = schedule.ladder.add(100);
  Errors errors;
  double effective = 0;
  uint64_t seed = 3;
  constexpr int kRuns = 600;
  for (int run = 0; run < kRuns; ++run) {
    Guest g(schedule, next_random(seed));
    g.rate.set(Rate::decaying(0, target, kBurst));
    for (uint64_t n = 0; n < kCalls; ++n) g.call(0);
    g.final_flush();
    EXPECT_EQ(Rate{g.state.rate}.rung(), target);
    // 5 sigma above the mean of the samples that the target adds.
    double added = kCalls / 100.0;
    EXPECT_LE(g.state.sampled_calls, most_extra_samples(100) + added + 5 * std::sqrt(added));
    EXPECT_GE(g.state.sampled_calls, kSamplesPerRung * rungs_below(100));
    effective += g.estimate.effective_samples() / kRuns;
    errors.add(g);
  }
  EXPECT_GT(effective, effective_after(rungs_below(100)));
  errors.expect_none("decaying");
}

TEST(ScheduleRate, interval_widens_as_the_pure_function_says) {
  EXPECT_EQ(decayed_interval(0, 16), 1u);
  EXPECT_EQ(decayed_interval(63, 16), 1u);
  EXPECT_EQ(decayed_interval(64, 16), 2u);
  EXPECT_EQ(decayed_interval(256, 16), 16u);
  EXPECT_EQ(decayed_interval(1'000'000, 16), 16u);
  EXPECT_EQ(decayed_interval(5 * 64, 20), 20u);
  EXPECT_EQ(decayed_interval(UINT64_MAX, 1u << 27), 1u << 27);
  EXPECT_EQ(rungs_below(1), 0u);
  EXPECT_EQ(rungs_below(16), 4u);
  EXPECT_EQ(rungs_below(17), 5u);
  EXPECT_EQ(most_extra_samples(16), 256u);
  EXPECT_NEAR(effective_after(1), 64, 1e-9);
  EXPECT_NEAR(effective_after(20), 192, 0.01);

  Ladder ladder;
  uint32_t target = ladder.add(20);
  MethodRate rate;
  rate.set(Rate::decaying(0, target, 32));
  for (uint32_t rung = 0; rung <= 6; ++rung) {
    EXPECT_EQ(ladder.interval(rate.load().rung()), decayed_interval(rung * kSamplesPerRung, 20));
    rate.widen(rate.load(), ladder);
  }
  EXPECT_FALSE(rate.load().decays());
}

TEST(ScheduleRate, method_of_few_calls_is_counted_exactly) {
  Schedule schedule = make();
  Guest g(schedule, 5);
  g.rate.set(Rate::decaying(0, 4, kBurst));
  for (uint32_t n = 0; n < kSamplesPerRung; ++n) g.call(0);
  g.final_flush();
  EXPECT_EQ(std::vector<uint64_t>(g.estimate.values().begin(), g.estimate.values().end()), g.truth);
}

TEST(ScheduleRate, change_is_noticed_within_its_bounds) {
  Schedule schedule = make();
  schedule.flush_first = uint64_t{1} << 40;
  schedule.loop_flush_first = uint64_t{1} << 40;
  const Rate wide = Rate::sampled(27, kBurst), off = Rate::off(kBurst);
  for (Rate slow : {wide, off}) {
    for (uint64_t skip : {uint64_t{1}, uint64_t{1'000'000}}) {
      Guest g(schedule, 9);
      g.rate.set(slow);
      for (uint64_t n = 0; n < skip; ++n) g.call(0);
      g.rate.set(Rate::every(kBurst));
      uint64_t before = g.calls;
      while (g.changes == 0 && g.calls - before < 2 * kRecheckCalls) g.call(0);
      EXPECT_LE(g.calls - before, kRecheckCalls + 1);
      EXPECT_EQ(g.state.rate, g.rate.load().word);
      uint64_t sampled = g.state.sampled_calls;
      for (int n = 0; n < 100; ++n) g.call(0);
      EXPECT_EQ(g.state.sampled_calls, sampled + 100);

      Guest loop(schedule, 9);
      loop.rate.set(slow);
      loop.call(skip);
      loop.rate.set(Rate::every(kBurst));
      loop.call(65'536 + kBurst);
      EXPECT_EQ(loop.changes, 1u);
      EXPECT_EQ(loop.state.rate, loop.rate.load().word);
    }
  }
}

TEST(ScheduleRate, off_takes_nothing_and_is_looked_at_ever_more_rarely) {
  Schedule schedule = make();
  schedule.flush_first = uint64_t{1} << 40;
  Guest g(schedule, 9);
  g.rate.set(Rate::every(kBurst));
  for (int n = 0; n < 1000; ++n) g.call(3);
  g.rate.set(Rate::off(kBurst));
  g.call(3);
  g.call(3);
  uint64_t counted = g.state.sampled_calls + g.state.bursts, flushes = g.flushes;
  EXPECT_EQ(g.state.rate, g.rate.load().word);
  for (int n = 0; n < 1'000'000; ++n) g.call(0);
  EXPECT_EQ(g.state.sampled_calls + g.state.bursts, counted);
  EXPECT_EQ(g.flushes, flushes);
  EXPECT_EQ(g.state.call_gap, g.state.calls / kRecheckPart);
  for (int n = 0; n < 8'000'000; ++n) g.call(0);
  EXPECT_EQ(g.state.call_gap, kRecheckCalls);
  EXPECT_EQ(weight_of(Rate{g.state.rate}, schedule.ladder), 0u);
}

TEST(ScheduleRate, first_samples_are_flushed_early_however_late_they_come) {
  Schedule schedule = make();
  Guest g(schedule, 9);
  g.rate.set(Rate::off(kBurst));
  while (g.calls < 1'000'000) g.call(0);
  g.rate.set(Rate::every(kBurst));
  while (g.changes == 0) g.call(0);
  uint64_t began = g.calls, flushes = g.flushes;
  while (g.flushes == flushes) g.call(0);
  EXPECT_EQ(g.calls - began, schedule.flush_first);
  // The second comes as ever, and so does one after a rest.
  g.rate.set(Rate::off(kBurst));
  while (g.changes == 1) g.call(0);
  g.rate.set(Rate::every(kBurst));
  while (g.changes == 2) g.call(0);
  began = g.calls;
  flushes = g.flushes;
  while (g.flushes == flushes) g.call(0);
  EXPECT_GT(g.calls - began, 1000 * schedule.flush_first);

  Guest loop(schedule, 9);
  loop.rate.set(Rate::off(kBurst));
  loop.call(1'000'000);
  loop.rate.set(Rate::every(kBurst));
  while (loop.changes == 0) loop.call(kBurst);
  flushes = loop.flushes;
  loop.call(schedule.loop_flush_first - 2 * kBurst);
  EXPECT_EQ(loop.flushes, flushes);
  loop.call(3 * kBurst);
  EXPECT_EQ(loop.flushes, flushes + 1);
}

TEST(ScheduleRate, flush_that_is_never_delivered_leaves_the_old_rate_in_force) {
  Schedule schedule = make();
  Guest g(schedule, 4);
  g.delivers = [] { return false; };
  for (int n = 0; n < 1000; ++n) g.call(5);
  g.rate.set(Rate::every(kBurst));
  uint64_t before = g.state.sampled_calls, flushes = g.flushes;
  for (int n = 0; n < 16'000; ++n) g.call(0);
  EXPECT_EQ(g.changes, 0u);
  EXPECT_NEAR(static_cast<double>(g.state.sampled_calls - before), 1000, 4 * std::sqrt(1000));
  // Repeated after each sample, not at every call.
  EXPECT_LT(g.flushes - flushes, 1300u);
}

TEST(ScheduleRate, burst_length_changes_too) {
  Schedule schedule = make(GapKind::kFixed);
  Guest g(schedule, 4);
  g.rate.set(Rate::sampled(1, 4));
  g.call(1000);
  EXPECT_NEAR(static_cast<double>(g.state.bursts), 125, 1);
  g.rate.set(Rate::sampled(1, 100));
  uint64_t before = g.state.bursts;
  g.call(2000);
  EXPECT_NEAR(static_cast<double>(g.state.bursts - before), 10, 2);
}

TEST(ScheduleRate, gap_that_was_drawn_at_another_rate_is_forgotten) {
  Schedule schedule = make(GapKind::kFixed);
  schedule.loop_flush_first = 124;
  Guest g(schedule, 4);
  g.call(122);  // the burst at 120 has drawn the gap after it
  ASSERT_LT(g.state.loop_gap, 0);
  g.rate.set(Rate::sampled(2, kBurst));
  g.call(2);
  EXPECT_EQ(g.changes, 1u) << "at the flush";
  EXPECT_EQ(g.state.loop_gap, 3 * static_cast<int32_t>(kBurst));
}

TEST(ScheduleRate, every_is_unbroken_in_loops) {
  Schedule schedule = make();
  Guest g(schedule, 4);
  g.rate.set(Rate::every(kBurst));
  g.call(100'000);
  g.final_flush();
  EXPECT_EQ(g.counts, g.truth);
}

// A burst without an end represents the iterations it has counted, whatever came before it: windows
// are weighted by iterations over bursts.
TEST(ScheduleRate, endless_bursts_count_by_their_length) {
  Schedule schedule = make();
  Guest g(schedule, 4);
  g.rate.set(Rate::sampled(4, kBurst));
  g.call(10'000);
  g.rate.set(Rate::every(kBurst));
  g.call(10'000);  // the change is noticed during these calls
  uint64_t bursts = g.state.bursts, iterations = g.state.iterations;
  g.call(1'000'000);
  auto ran = static_cast<double>(g.state.iterations - iterations);
  EXPECT_GT(ran, 900'000.0);
  EXPECT_NEAR(static_cast<double>(g.state.bursts - bursts), ran / kBurst, 0.01 * ran / kBurst);
}

TEST(ScheduleRate, rates_change_while_threads_run) {
  constexpr int kThreads = 3;
  constexpr uint64_t kCalls = 400'000;
  Schedule schedule = make();
  uint64_t slab = 0;
  int code = 0;
  FastSampling fast(&slab, 1, schedule);
  fast.add(0);
  fast.set_entry(0, &code);
  std::vector<Reservation> memory(kThreads);
  std::atomic<int> done{0};
  auto run = [&](int t) {
    auto& context = *static_cast<ThreadContext*>(memory[t].data());
    MethodState& s = context.method(0);
    Estimate estimate;
    uint64_t counted = 0;
    auto flush = [&] {
      std::vector<uint64_t> counts = {counted};
      estimate.take(weight_of(Rate{s.rate}, schedule.ladder), s.sampled_calls, counts);
    };
    for (uint64_t n = 1; n <= kCalls; ++n) {
      if (--s.call_countdown >= 0) continue;
      if (fast.take(0, context) != nullptr) {
        ++counted;
        continue;
      }
      Rate rate = fast.rate(0).load();
      CallEvent e = call_event(s, schedule, rate, context.random);
      if (e.flush) flush();
      if (e.change) commit_rate(s, schedule, rate, context.random, e);
      if (!e.sample) continue;
      ++counted;
      if (spend_sample(context)) fast.rate(0).brake(Rate{s.rate}, schedule.ladder);
      if (count_sample(s)) fast.rate(0).widen(Rate{s.rate}, schedule.ladder);
    }
    flush();
    EXPECT_EQ(calls_so_far(s), kCalls);
    EXPECT_EQ(counted, s.sampled_calls);
    EXPECT_EQ(counted, context.samples_taken.load());
    // Most windows are at intervals up to 64: five standard errors are far below a tenth.
    EXPECT_NEAR(static_cast<double>(estimate.values()[0]) / kCalls, 1, 0.1);
    done.fetch_add(1);
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    auto reserved = Reservation::create(kMethodsOffset + sizeof(MethodState), "context");
    memory[t] = std::move(*reserved);
    auto& context = *static_cast<ThreadContext*>(memory[t].data());
    context.runtime = &slab;
    context.random = static_cast<uint64_t>(t) + 1;
    context.method(0).slab = &slab;
    threads.emplace_back(run, t);
  }
  uint64_t random = 3, seen = 0;
  while (done.load() < kThreads) {
    auto rung = static_cast<uint32_t>(next_random(random) % 7);
    fast.rate(0).set(rung == 0 ? Rate::decaying(0, 6, kBurst) : Rate::sampled(rung, kBurst));
    Progress p = progress_of(static_cast<ThreadContext*>(memory[0].data())->method(0));
    EXPECT_GE(p.calls, seen) << "never goes back";
    seen = p.calls;
    std::this_thread::yield();
  }
  for (std::thread& t : threads) t.join();
}

TEST(Rate, word_holds_its_fields) {
  Ladder ladder;
  for (uint32_t rung = 0; rung < Ladder::kPowers; ++rung) {
    EXPECT_EQ(ladder.interval(rung), 1u << rung);
    Rate r = Rate::decaying(rung, 27, 1u << 20).with_epoch(0xfffffff);
    EXPECT_EQ(r.rung(), rung);
    EXPECT_EQ(r.target(), 27u);
    EXPECT_EQ(r.burst(), 1u << 20);
    EXPECT_EQ(r.epoch(), 0xfffffffu);
    EXPECT_EQ(r.decays(), rung != 27);
    EXPECT_EQ(r.state(), rung == 0 ? RateState::kEvery : RateState::kSampled);
  }
  EXPECT_EQ(Rate::off(5).state(), RateState::kOff);
  EXPECT_FALSE(Rate::off(5).samples());
  EXPECT_FALSE(Rate().samples());
  EXPECT_EQ(Rate::off(UINT32_MAX).burst(), Rate::kLongestBurst);
}

TEST(Rate, set_counts_epochs_and_only_changes) {
  Ladder ladder;
  MethodRate rate;
  EXPECT_TRUE(rate.set(Rate::decaying(0, 4, 32)));
  EXPECT_FALSE(rate.set(Rate::decaying(0, 4, 32)));
  EXPECT_EQ(rate.load().epoch(), 1u);
  Rate seen = rate.load();
  EXPECT_TRUE(rate.widen(seen, ladder));
  EXPECT_FALSE(rate.widen(seen, ladder)) << "another thread was first";
  EXPECT_EQ(rate.load().rung(), 1u);
  EXPECT_TRUE(rate.set(Rate::off(32)));
  EXPECT_FALSE(rate.widen(rate.load(), ladder)) << "off stays off";
  EXPECT_EQ(rate.load().epoch(), 3u);
}

TEST(Ladder, has_the_powers_and_what_users_name) {
  Ladder ladder(GapKind::kPrime);
  EXPECT_EQ(ladder.add(1), 0u);
  EXPECT_EQ(ladder.add(1024), 10u);
  EXPECT_EQ(ladder.add(1000), 28u);
  EXPECT_EQ(ladder.add(1000), 28u);
  EXPECT_EQ(ladder.law(28).weight(), 997u) << "the prime is the mean";
  for (uint32_t i = 0; i < 100; ++i) ladder.add(3000 + i);
  EXPECT_EQ(ladder.interval(ladder.add(9000)), 8192u) << "all rungs are taken";
  EXPECT_EQ(Ladder::power_below(0), 0u);
  EXPECT_EQ(Ladder::power_below(1.9), 0u);
  EXPECT_EQ(Ladder::power_below(2), 1u);
  EXPECT_EQ(Ladder::power_below(1023.9), 9u);
  EXPECT_EQ(Ladder::power_below(1e30), 27u);
}

TEST(Estimate, weighs_each_window_by_its_own_rate) {
  Estimate e;
  const std::vector<uint64_t> at1 = {10, 2}, at2 = {15, 2}, wrapped = {1, 2};
  EXPECT_EQ(e.take(1, 12, at1).samples, 12u);
  Window w = e.take(16, 17, at2);
  EXPECT_EQ(w.samples, 5u);
  EXPECT_EQ(w.counts, (std::vector<uint64_t>{5, 0}));
  EXPECT_EQ(e.values()[0], 10u + 80);
  EXPECT_EQ(e.values()[1], 2u);
  EXPECT_NEAR(e.effective_samples(), 92.0 * 92 / (12 + 256 * 5), 1e-9);
  e.take(1, 17, wrapped);
  EXPECT_EQ(e.values()[0], 91u);
  e.take(UINT32_MAX, 18, std::vector<uint64_t>{UINT64_MAX, 2});
  EXPECT_EQ(e.values()[0], UINT64_MAX);
}

}  // namespace
}  // namespace uptier::sampler::schedule_rate_test
