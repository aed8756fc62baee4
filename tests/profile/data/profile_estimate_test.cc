#include "profile/algebra/rake.h"
#include "profile/data/estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "profile/base/numbers.h"
#include "tests/support/trace_samples.h"

namespace uptier::profile::profile_estimate_test {
namespace {

using uptier::test::Generator;
using Words = std::vector<uint64_t>;

Observed counts(Words words) { return {std::move(words), {}, {}}; }

// The counts of one call target site: `other`, and a table.
Observed callees(uint64_t other, std::vector<std::pair<uint64_t, uint64_t>> table) {
  Observed observed = counts({other});
  for (const auto& [callee, count] : table) {
    observed.tables[{SlotKind::kCallTarget, 1}][{0, callee}] = {count, 0};
  }
  return observed;
}

Schema one_slot(SlotKind kind) {
  Schema schema;
  schema.add(kind, 1, 2);
  return schema;
}

TEST(Advance, growth_is_weighted_by_the_interval_it_came_with) {
  const Schema schema = one_slot(SlotKind::kBlock);
  Observed seen;
  advance(seen, schema, counts({10}), 1);
  advance(seen, schema, counts({14}), 16);
  advance(seen, schema, counts({14}), 1000);
  advance(seen, schema, counts({15}), 0);  // weight unknown: 1
  EXPECT_EQ(seen.counts, Words{15});
  EXPECT_EQ(seen.estimates, Words{10 + 4 * 16 + 1});
}

TEST(Advance, constant_interval_gives_multiples_of_the_counts) {
  Generator generator(51);
  for (int round = 0; round < 300; ++round) {
    MethodProfile method = generator.method({}, generator.schema(1));
    test::time_every_loop(method);
    const uint64_t weight = 1 + generator.below(30);
    Observed seen;
    advance(seen, method.schema, {method.counts, {}, method.tables}, weight);
    method.weigh(weight);
    ASSERT_EQ(seen.estimates, method.estimates);
    ASSERT_EQ(seen.tables, method.tables);
    // The same snapshot again adds nothing.
    const Observed before = seen;
    advance(seen, method.schema, {method.counts, {}, method.tables}, 77);
    ASSERT_EQ(seen, before);
  }
}

TEST(Advance, count_that_falls_takes_its_estimate_along) {
  const Schema schema = one_slot(SlotKind::kBlock);
  Observed seen;
  advance(seen, schema, counts({10}), 8);
  advance(seen, schema, counts({5}), 8);
  EXPECT_EQ(seen.estimates, Words{40});
  advance(seen, schema, counts({0}), 8);
  EXPECT_EQ(seen.estimates, Words{0});
}

TEST(Advance, negative_sums_are_weighted_too) {
  const Schema schema = one_slot(SlotKind::kRange);
  Observed seen;
  advance(seen, schema, counts({1, -uint64_t{5}, UINT64_MAX, -uint64_t{5}, -uint64_t{5}}), 4);
  advance(seen, schema, counts({2, 5, 0, -uint64_t{5}, 10}), 2);
  EXPECT_TRUE(load_wide(&seen.estimates[slot_word::kSum]) == -5 * 4 + 10 * 2);
  EXPECT_EQ(seen.estimates[slot_word::kMin], 0u);
  EXPECT_EQ(seen.estimates[slot_word::kMax], 0u);
}

TEST(Advance, entry_that_enters_the_table_brings_its_estimate_from_other) {
  const Schema schema = one_slot(SlotKind::kCallTarget);
  Observed seen;
  advance(seen, schema, callees(10, {{1, 20}}), 1);
  // Callee 2 moves from `other` into the table, with 6 old calls and 4 new ones.
  advance(seen, schema, callees(4, {{1, 20}, {2, 10}}), 8);
  const Table& table = seen.tables.at({SlotKind::kCallTarget, 1});
  EXPECT_EQ(seen.estimates, Words{4});
  EXPECT_EQ(table.at({0, 1}).estimate, 20u);
  EXPECT_EQ(table.at({0, 2}).estimate, 6u + 4 * 8);
}

TEST(Advance, estimates_of_a_table_add_up_whatever_moves) {
  // A producer that counts without a limit and hands over its two largest entries each time.
  std::mt19937_64 random(52);
  const Schema schema = one_slot(SlotKind::kCallTarget);
  for (int round = 0; round < 300; ++round) {
    Observed seen, all = callees(0, {});
    uint64_t expected = 0;
    for (int flush = 0; flush < 10; ++flush) {
      const uint64_t weight = 1 + random() % 16;
      for (uint64_t calls = random() % 40; calls > 0; --calls, expected += weight) {
        ++all.tables[{SlotKind::kCallTarget, 1}][{0, random() % (1 + flush)}].count;
      }
      MethodProfile method;
      method.schema = schema;
      method.counts = all.counts;
      method.tables = all.tables;
      if (method.tables.begin() != method.tables.end() && method.tables.begin()->second.empty()) {
        method.tables.clear();
      }
      method.weigh(0);
      Profile one;
      one.methods.emplace(method.key, method);
      trim(one, 2);
      const MethodProfile& trimmed = one.methods.begin()->second;
      advance(seen, schema, {trimmed.counts, {}, trimmed.tables}, weight);
      uint64_t sum = seen.estimates[0];
      for (const auto& [site, table] : seen.tables) {
        for (const auto& [key, entry] : table) sum += entry.estimate;
      }
      ASSERT_EQ(sum, expected);
    }
  }
}

TEST(Advance, any_counts_are_taken_without_harm) {
  Generator generator(53);
  for (int round = 0; round < 300; ++round) {
    const Schema schema = generator.schema(1);
    MethodProfile method;
    Observed seen;
    for (int flush = 0; flush < 5; ++flush) {
      const MethodProfile next = generator.method({}, schema);
      advance(seen, schema, {next.counts, {}, next.tables}, generator.count());
    }
    method.schema = schema;
    method.counts = seen.counts;
    method.estimates = seen.estimates;
    method.tables = seen.tables;
    ASSERT_TRUE(method.check().ok()) << method.check().error().message;
  }
}

MethodProfile method_of(SlotKind kind, Words words, uint64_t weight, uint64_t samples) {
  MethodProfile method;
  method.schema.add(kind, 1, 2);
  method.counts = std::move(words);
  method.weigh(weight);
  method.sampled_calls = samples;
  return method;
}

TEST(Estimate, every_call_observed_leaves_no_doubt) {
  EXPECT_EQ(estimate_of(1000, 1000, 10), (Estimate{1000, 1000, 1000}));
  EXPECT_EQ(estimate_of(0, 0, 0), (Estimate{0, 0, 0}));
}

TEST(Estimate, width_follows_the_formula) {
  const Estimate many = estimate_of(400, 6400, 100);  // n_eff 100, w 16
  const double half = 6400 * 1.96 * std::sqrt((1 - 1.0 / 16) / 100);
  EXPECT_DOUBLE_EQ(many.total, 6400);
  EXPECT_DOUBLE_EQ(many.low, 6400 - half);
  EXPECT_DOUBLE_EQ(many.high, 6400 + half);
  const Estimate few = estimate_of(25, 400, 100);  // n_eff 25
  EXPECT_DOUBLE_EQ(few.high, 400 + 400 * 1.96 * std::sqrt((1 - 1.0 / 16) / 25));
  EXPECT_DOUBLE_EQ(estimate_of(2, 32, 0).low, 2);  // never less than the observed count
}

TEST(Estimate, interval_holds_the_truth_as_often_as_it_says) {
  // 3000 experiments of 4000 calls, each observed with probability 1/8. The share of intervals that
  // contain 4000 has a standard deviation of 0.4 % around 95 %; five of them are allowed, and the
  // normal approximation costs less than one.
  std::mt19937_64 random(54);
  constexpr int kRuns = 3000, kCalls = 4000, kWeight = 8;
  int held = 0;
  double sum = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::binomial_distribution<uint64_t> observed(kCalls, 1.0 / kWeight);
    const uint64_t count = observed(random);
    const Estimate e = estimate_of(count, count * kWeight, count);
    held += e.low <= kCalls && kCalls <= e.high;
    sum += e.total;
  }
  EXPECT_NEAR(static_cast<double>(held) / kRuns, 0.95, 0.02);
  EXPECT_NEAR(sum / kRuns, kCalls, 5 * std::sqrt(kCalls * 7.0 / kRuns));
}

TEST(Estimate, executions_of_one_sampled_call_are_no_independent_evidence) {
  // 2000 calls with 50 executions each.
  std::mt19937_64 random(55);
  constexpr int kRuns = 2000, kCalls = 2000, kEach = 50, kWeight = 8;
  int held = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::binomial_distribution<uint64_t> observed(kCalls, 1.0 / kWeight);
    const uint64_t samples = observed(random);
    const Estimate e = estimate_of(samples * kEach, samples * kEach * kWeight, samples);
    held += e.low <= kCalls * kEach && kCalls * kEach <= e.high;
  }
  EXPECT_NEAR(static_cast<double>(held) / kRuns, 0.95, 0.025);
}

// A loop with 8,000 bursts of 32 iterations each; one burst in eight is observed. Site 1 runs in
// each iteration; site 2 runs in one of 32 on average, in all iterations of a burst or in none;
// site 3 runs in one of 32, evenly.
struct Bursts {
  static constexpr uint64_t kBursts = 8000, kLong = 32, kWeight = 8;

  MethodProfile observe(std::mt19937_64& random) const {
    MethodProfile method;
    method.schema = Schema::block_schema(3, 0);
    method.counts.resize(3);
    for (uint64_t burst = 0; burst < kBursts; ++burst) {
      if (random() % kWeight != 0) continue;
      ++method.bursts;
      method.counts[0] += kLong;
      method.counts[1] += burst % kLong == 0 ? kLong : 0;
      method.counts[2] += 1;
    }
    method.weigh(kWeight);
    return method;
  }
  static double truth(SiteId site) {
    return static_cast<double>(site == 1   ? kBursts * kLong
                               : site == 2 ? (kBursts + 31) / 32 * kLong
                                           : kBursts);
  }
};

TEST(Estimate, interval_holds_the_truth_however_executions_lie_in_bursts) {
  std::mt19937_64 random(56);
  constexpr int kRuns = 1000;
  int held[4] = {}, alike[4] = {};
  for (int run = 0; run < kRuns; ++run) {
    const MethodProfile method = Bursts{}.observe(random);
    for (SiteId site = 1; site <= 3; ++site) {
      const double truth = Bursts::truth(site);
      const Estimate e = *method.estimate(SlotKind::kBlock, site);
      held[site] += e.low <= truth && truth <= e.high;
      const uint64_t count = *method.count(SlotKind::kBlock, site);
      const Estimate one = estimate_of(count, count * Bursts::kWeight, method.bursts);
      alike[site] += one.low <= truth && truth <= one.high;
    }
  }
  // Executions of site 2 are correlated by 1, not 3/4, so 91 % are expected; a standard deviation
  // is 1 %.
  for (SiteId site = 1; site <= 3; ++site) EXPECT_GE(held[site], 870) << "site " << site;
  // With one sample assumed for each execution, the intervals of site 2 are far too narrow.
  EXPECT_LE(alike[2], 600);
}

TEST(Estimate, width_goes_by_how_many_executions_a_sample_holds) {
  MethodProfile method;
  method.schema = Schema::block_schema(3, 0);
  method.counts = {3200, 32, 0};
  method.weigh(16);
  method.sampled_calls = 60;
  method.bursts = 40;
  auto half = [&](double estimate, double effective) {
    return estimate * 1.96 * std::sqrt((1 - 1.0 / 16) / effective);
  };
  // 100 samples of 32 executions.
  const Estimate busiest = *method.estimate(SlotKind::kBlock, 1);
  EXPECT_DOUBLE_EQ(busiest.high, 16 * 3200 + half(16 * 3200, 100));
  const double together = 1 + 31 * (0.01 + 0.75 * 0.99);
  const Estimate rare = *method.estimate(SlotKind::kBlock, 2);
  EXPECT_DOUBLE_EQ(rare.high, 16 * 32 + half(16 * 32, 32 / together));
  EXPECT_EQ(estimate_in(method, 32, 512), rare);
  // A site that was never seen may also run that often in one burst.
  const Estimate unseen = *method.estimate(SlotKind::kBlock, 3);
  EXPECT_NEAR(unseen.high, std::log(0.05) / std::log(15.0 / 16) * (1 + 31 * 0.75), 1e-6);
}

TEST(Estimate, site_that_was_never_seen_may_have_run) {
  MethodProfile method;
  method.schema = Schema::block_schema(2, 0);
  method.counts = {100, 0};
  method.weigh(16);
  const Estimate unseen = *method.estimate(SlotKind::kBlock, 2);
  EXPECT_EQ(unseen.total, 0);
  EXPECT_EQ(unseen.low, 0);
  EXPECT_NEAR(unseen.high, std::log(0.05) / std::log(15.0 / 16), 1e-9);
  method.weigh(1);
  EXPECT_EQ(*method.estimate(SlotKind::kBlock, 2), (Estimate{0, 0, 0}));
  EXPECT_EQ(method.estimate(SlotKind::kBlock, 3), std::nullopt);
  EXPECT_EQ(method.estimate(SlotKind::kEdge, 1), std::nullopt);
}

// Nothing is known about a method without samples, and little about one with few samples.
TEST(Estimate, site_of_a_method_that_was_hardly_sampled_may_have_run_often) {
  MethodProfile method;
  method.schema = Schema::block_schema(2, 0);
  method.counts = {0, 0};
  method.weigh(16);
  method.calls = 98'000;
  method.interval = 16;
  EXPECT_EQ(method.estimate(SlotKind::kBlock, 2), std::nullopt);
  method.sampled_calls = 2;
  EXPECT_NEAR(method.estimate(SlotKind::kBlock, 2)->high,
              std::log(0.05) / std::log(1 - 2.0 / 98'000), 1);
}

TEST(Estimate, call_targets_add_up_table_and_other_and_gauges_have_none) {
  MethodProfile method = method_of(SlotKind::kCallTarget, {5}, 1, 0);
  method.tables[{SlotKind::kCallTarget, 1}] = {{{0, 1}, {10, 0}}, {{0, 2}, {20, 0}}};
  method.weigh(4);
  EXPECT_EQ(method.count(SlotKind::kCallTarget, 1), 35u);
  EXPECT_EQ(method.estimate(SlotKind::kCallTarget, 1)->total, 140);
  const MethodProfile gauge = method_of(SlotKind::kGauge, {7}, 1, 0);
  EXPECT_EQ(gauge.count(SlotKind::kGauge, 1), std::nullopt);
  EXPECT_EQ(gauge.estimate(SlotKind::kGauge, 1), std::nullopt);
  EXPECT_EQ(gauge.words(SlotKind::kGauge, 1)[slot_word::kGaugeValue], 7u);
}

// entries, iterations, timed, timed iterations, cycles, exclusive cycles, squares
MethodProfile loop(uint64_t entries, Words cycles, uint64_t weight, uint64_t samples) {
  uint64_t sum = 0, squares = 0;
  for (const uint64_t c : cycles) {
    sum += c;
    squares += c * c;
  }
  return method_of(SlotKind::kLoop, {entries, 9, cycles.size(), 9, sum, sum, squares, 0}, weight,
                   samples);
}

TEST(LoopCycles, all_timed_and_all_observed_is_exact) {
  const Estimate e = *loop(3, {100, 300, 200}, 1, 3).loop_cycles(1);
  EXPECT_EQ(e, (Estimate{600, 600, 600}));
}

TEST(LoopCycles, mean_of_the_timed_times_estimated_entries) {
  const Estimate e = *loop(30, {100, 300}, 4, 30).loop_cycles(1);
  EXPECT_DOUBLE_EQ(e.total, 200 * 120);
  const double variance = 20000.0 / (2 * 200 * 200) * (1 - 2.0 / 120) + (1 - 0.25) / 30;
  EXPECT_DOUBLE_EQ(e.high, e.total * (1 + 1.96 * std::sqrt(variance)));
  EXPECT_GE(e.low, 400);
}

TEST(LoopCycles, are_unknown_when_nothing_was_timed_and_zero_when_nothing_ran) {
  EXPECT_EQ(loop(30, {}, 4, 30).loop_cycles(1), std::nullopt);
  EXPECT_EQ(loop(0, {}, 4, 30).loop_cycles(1), (Estimate{0, 0, 0}));
  EXPECT_EQ(loop(0, {}, 4, 30).loop_cycles(2), std::nullopt);
}

// A loop whose executions take longer the later they run, with `each(n)` iterations; the first
// `timed` executions of each window are timed.
double extrapolated(uint64_t (*cycles)(uint64_t n), uint64_t (*each)(uint64_t n), uint64_t timed,
                    double& truth) {
  Schema schema;
  schema.add(SlotKind::kLoop, 1);
  profile::Observed seen;
  Words words(8);
  uint64_t n = 0;
  truth = 0;
  for (uint64_t end = 32; end <= 1 << 16; end *= 2) {
    for (uint64_t in_window = 0; n < end; ++n, ++in_window) {
      truth += static_cast<double>(cycles(n));
      words[slot_word::kLoopEntries] += 1;
      words[slot_word::kLoopIterations] += each(n);
      if (in_window >= timed) continue;
      words[slot_word::kLoopTimed] += 1;
      words[slot_word::kLoopTimedIterations] += each(n);
      words[slot_word::kLoopCycles] += cycles(n);
      words[slot_word::kLoopSquares] += cycles(n) * cycles(n);
    }
    profile::advance(seen, schema, {words, {}, {}}, 1);
  }
  MethodProfile m;
  m.schema = schema;
  m.counts = seen.counts;
  m.estimates = seen.estimates;
  return m.loop_cycles(1)->total;
}

TEST(LoopCycles, windows_between_flushes_are_weighted_by_what_ran_in_them) {
  double truth;
  // Executions take twice as long after the first quarter: one mean of all timed executions is far
  // off.
  auto step = [](uint64_t n) -> uint64_t { return n < 1 << 14 ? 1000 : 2000; };
  auto one = [](uint64_t) -> uint64_t { return 1; };
  EXPECT_NEAR(extrapolated(step, one, 100, truth) / truth, 1, 1e-3);
  EXPECT_EQ(extrapolated(step, one, 1 << 20, truth), truth) << "all timed: exact";
}

TEST(LoopCycles, go_with_iterations_where_these_vary) {
  double truth;
  auto cycles = [](uint64_t n) -> uint64_t { return 50 + 10 * (n % 5000); };
  auto each = [](uint64_t n) -> uint64_t { return 1 + n % 5000; };
  EXPECT_NEAR(extrapolated(cycles, each, 100, truth) / truth, 1, 0.03);
}

TEST(LoopCycles, of_an_execution_that_spans_windows_are_its_own) {
  Schema schema;
  schema.add(SlotKind::kLoop, 1);
  profile::Observed seen;
  // In each window the last execution ends, and another begins that does not count as an entry yet.
  for (uint64_t w = 0; w < 10; ++w) {
    uint64_t cycles = 100 * w * (w + 1) / 2;
    profile::advance(seen, schema, {{w, 10 * w + 5, w, 10 * w, cycles, cycles, 0, 0}, {}, {}}, 1);
  }
  MethodProfile m;
  m.schema = schema;
  m.counts = seen.counts;
  m.estimates = seen.estimates;
  EXPECT_EQ(m.loop_cycles(1)->total, 4500);
}

TEST(LoopCycles, one_timed_execution_says_little) {
  const Estimate e = *loop(100, {50}, 1, 100).loop_cycles(1);
  EXPECT_DOUBLE_EQ(e.total, 5000);
  EXPECT_DOUBLE_EQ(e.low, 50);
  EXPECT_GT(e.high, 9000);
}

TEST(LoopCycles, interval_holds_the_truth_as_often_as_it_says) {
  // 1000 executions with uniform lengths around 500, 100 of them timed; the truth is their sum.
  std::mt19937_64 random(56);
  constexpr int kRuns = 2000, kEntries = 1000, kTimed = 100;
  int held = 0;
  for (int run = 0; run < kRuns; ++run) {
    double truth = 0;
    Words timed;
    for (int i = 0; i < kEntries; ++i) {
      const uint64_t cycles = random() % 1001;
      truth += static_cast<double>(cycles);
      if (i < kTimed) timed.push_back(cycles);
    }
    const Estimate e = *loop(kEntries, timed, 1, kEntries).loop_cycles(1);
    held += e.low <= truth && truth <= e.high;
  }
  EXPECT_NEAR(static_cast<double>(held) / kRuns, 0.95, 0.025);
}

TEST(Estimate, order_of_its_three_numbers_holds_for_any_counts) {
  Generator generator(57);
  for (int round = 0; round < 500; ++round) {
    const MethodProfile method = generator.method({}, generator.schema(1));
    for (const Slot& slot : method.schema.slots) {
      for (const auto& e : {method.estimate(slot.kind, slot.site), method.loop_cycles(slot.site)}) {
        if (!e) continue;
        ASSERT_LE(0, e->low);
        ASSERT_LE(e->low, e->total);
        ASSERT_LE(e->total, e->high);
        ASSERT_TRUE(std::isfinite(e->high));
      }
    }
  }
}

// One sample whose gap exceeds all executions must not outweigh the samples before it.
TEST(Coverage, weighs_samples_by_what_ran_and_makes_up_for_pauses) {
  Coverage c;
  EXPECT_EQ(c.weigh(0, 100), 1u) << "no samples yet";
  EXPECT_EQ(c.weigh(50, 150), 3u) << "150 calls, 50 samples, the pause before them included";
  EXPECT_EQ(c.weigh(50, 1000), 1u) << "a window without samples ends nothing";
  EXPECT_EQ(c.weigh(51, 1150), 1000u) << "the one sample since 150";
  EXPECT_EQ(c.covered, 50 * 3 + 1000.0);
  EXPECT_DOUBLE_EQ(c.stretch(2000, 9600, 32), 2300.0 / 1150);
  EXPECT_EQ(c.stretch(2000, 0, 0), 1) << "rates that do not adapt";
  EXPECT_EQ(Coverage().stretch(5, 5, 32), 1) << "nothing known";
  EXPECT_EQ(c.squares, 50 * 3 * 3 + 1000u * 1000u);
  c.end_window(52, uint64_t{1} << 40);
  EXPECT_EQ(c.squares, kMaxCount);
}

}  // namespace
}  // namespace uptier::profile::profile_estimate_test
