// The sum of squared weights of a method's samples: its effect on intervals, and that it is copied
// and merged like the other sums.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "profile/algebra/algebra.h"
#include "profile/algebra/rake.h"
#include "profile/base/numbers.h"
#include "profile/data/estimate.h"
#include "profile/formats/tsv.h"
#include "profile/upf/method.h"
#include "tests/support/trace_samples.h"

namespace uptier::profile::profile_weights_test {
namespace {

using uptier::test::Generator;

// A method without loops, with calls sampled at the gap of their window. Each call runs site 1; one
// call in 16 runs site 2.
struct Windows {
  struct Window {
    uint64_t calls, gap;
  };
  std::vector<Window> windows;

  MethodProfile observe(std::mt19937_64& random) const {
    const Schema schema = Schema::block_schema(2, 0);
    MethodProfile method;
    Observed seen;
    Coverage coverage;
    Observed now{{0, 0}, {}, {}};
    uint64_t call = 0;
    for (const Window& w : windows) {
      for (uint64_t i = 0; i < w.calls; ++i, ++call) {
        if (random() % w.gap != 0) continue;
        ++method.sampled_calls;
        ++now.counts[0];
        now.counts[1] += call % 16 == 0 ? 1 : 0;
      }
      method.calls += w.calls;
      const uint64_t weight =
          coverage.weigh(method.sampled_calls, static_cast<double>(method.calls));
      advance(seen, schema, now, weight);
    }
    method.schema = schema;
    method.counts = seen.counts;
    method.estimates = seen.estimates;
    method.weight_squares = coverage.squares;
    return method;
  }
  double truth() const {
    uint64_t calls = 0;
    for (const Window& w : windows) calls += w.calls;
    return static_cast<double>((calls + 15) / 16);
  }
};

// Returns how many percent of 400 intervals contain the truth, with the sum of squares and without
// it.
std::pair<double, double> held(const Windows& windows) {
  std::mt19937_64 random(57);
  constexpr int kRuns = 400;
  int with = 0, without = 0;
  for (int run = 0; run < kRuns; ++run) {
    MethodProfile method = windows.observe(random);
    const auto holds = [&] {
      const Estimate e = *method.estimate(SlotKind::kBlock, 2);
      return e.low <= windows.truth() && windows.truth() <= e.high;
    };
    with += holds();
    method.weight_squares = 0;
    without += holds();
  }
  return {with * 100.0 / kRuns, without * 100.0 / kRuns};
}

// 10,000 samples of weight 2 and 1,250 of weight 128, which represent nearly all executions. A
// standard deviation of the shares is 1.2 points.
TEST(WeightSquares, intervals_of_unequal_samples_hold) {
  const auto [with, without] = held({{{20'000, 2}, {160'000, 128}}});
  EXPECT_GE(with, 90);
  EXPECT_LE(without, 75);
}

TEST(WeightSquares, samples_of_one_weight_have_the_intervals_they_had) {
  const auto [with, without] = held({{{40'000, 16}, {40'000, 16}}});
  EXPECT_NEAR(with, without, 2);
  EXPECT_GE(with, 90);
}

MethodProfile of_one_block(uint64_t count, uint64_t estimate, uint64_t samples, uint64_t squares) {
  MethodProfile method;
  method.schema = Schema::block_schema(1, 0);
  method.counts = {count};
  method.estimates = {estimate};
  method.sampled_calls = samples;
  method.weight_squares = squares;
  return method;
}

double half_of(const MethodProfile& method) {
  const Estimate e = *method.estimate(SlotKind::kBlock, 1);
  return e.high - e.total;
}

TEST(WeightSquares, tell_how_many_samples_of_one_weight_there_might_as_well_be) {
  // 90 samples of weight 2 and 10 of weight 82: a mean of 10.
  const uint64_t squares = 90 * 4 + 10 * 82 * 82;
  const double alike = 100 * 10 * 10 / static_cast<double>(squares);
  const auto half = [](double effective) { return 1000 * 1.96 * std::sqrt(0.9 / effective); };
  EXPECT_DOUBLE_EQ(half_of(of_one_block(100, 1000, 100, squares)), half(100 * alike));
  EXPECT_DOUBLE_EQ(half_of(of_one_block(100, 1000, 100, 0)), half(100)) << "not known";
  EXPECT_DOUBLE_EQ(half_of(of_one_block(100, 1000, 100, 10'000)), half(100)) << "all of weight 10";
  EXPECT_DOUBLE_EQ(half_of(of_one_block(100, 1000, 100, 17)), half(100)) << "known of few";
  EXPECT_DOUBLE_EQ(half_of(of_one_block(100, 1000, 100, UINT64_MAX)), half(1)) << "one at least";
  EXPECT_EQ(estimate_in(of_one_block(100, 1000, 100, squares), 100, 1000),
            of_one_block(100, 1000, 100, squares).estimate(SlotKind::kBlock, 1));
}

// 100 bursts of 32 iterations; each of three loops has a third of them. So a sample can hold 32
// executions of one loop's body, although the mean is a third of that.
TEST(WeightSquares, sample_may_hold_as_many_executions_as_it_has_iterations) {
  MethodProfile method;
  method.schema = Schema::block_schema(3, 0);
  method.counts = {1056, 1056, 1088};
  method.weigh(16);
  method.bursts = 100;
  method.iterations = 3200 * 16;
  const double share = 1056.0 / 3200, together = 1 + 31 * (share + 0.75 * (1 - share));
  EXPECT_DOUBLE_EQ(half_of(method), 16 * 1056 * 1.96 * std::sqrt(15.0 / 16 / (1056 / together)));
  method.bursts = 0;
  method.sampled_calls = 100;
  const double most = 10.88, part = 1056 / (most * 100);
  const double alone = 1 + (most - 1) * (part + 0.75 * (1 - part));
  EXPECT_DOUBLE_EQ(half_of(method), 16 * 1056 * 1.96 * std::sqrt(15.0 / 16 / (1056 / alone)))
      << "iterations that no burst has met say nothing of samples";
}

// ---- Copies of the sum ------------------------------------------------------------------------

Profile of(MethodProfile method) {
  Profile profile;
  profile.methods.emplace(method.key, std::move(method));
  return profile;
}

TEST(WeightSquares, add_up_scale_and_are_taken_off) {
  Profile sum = of(of_one_block(5, 50, 5, 500));
  EXPECT_EQ(merge(sum, of(of_one_block(1, 3, 1, 9))).saturated, 0u);
  EXPECT_EQ(sum.methods.begin()->second.weight_squares, 509u);
  ASSERT_TRUE(scale(sum, 3, 2).ok());
  EXPECT_EQ(sum.methods.begin()->second.weight_squares, 763u);
  EXPECT_EQ(subtract(sum, of(of_one_block(0, 0, 0, 700))), 0u);
  EXPECT_EQ(sum.methods.begin()->second.weight_squares, 63u);
  EXPECT_EQ(subtract(sum, of(of_one_block(0, 0, 0, 64))), 1u);
  EXPECT_EQ(sum.methods.begin()->second.weight_squares, 0u);
  Profile most = of(of_one_block(0, 0, 0, kMaxCount));
  EXPECT_EQ(merge(most, of(of_one_block(0, 0, 0, 1))).saturated, 1u);
  EXPECT_EQ(most.methods.begin()->second.weight_squares, kMaxCount);
}

// Old files have entries without the sum, and a method that lacks it is written in the same form.
TEST(WeightSquares, take_no_byte_in_files_of_methods_that_lack_them) {
  const MethodProfile with = of_one_block(5, 50, 5, 500), without = of_one_block(5, 50, 5, 0);
  Bytes long_entry, entry;
  append_entry(with, 1, 0, long_entry);
  append_entry(without, 1, 0, entry);
  EXPECT_EQ(long_entry.size(), entry.size() + 2) << "500 is two bytes of seven bits";
  for (const auto& [method, bytes] : {std::pair(with, long_entry), std::pair(without, entry)}) {
    ByteSpan rest = bytes;
    std::vector<uint64_t> words;
    MethodView view;
    view.weight_squares = 77;  // left over from the entry before
    ASSERT_TRUE(take_entry(kUpfEntries, 0, rest, words, view).ok());
    EXPECT_TRUE(rest.empty());
    EXPECT_EQ(*method_of(view, ""), method);
  }
}

TEST(WeightSquares, forms_without_them_are_read_as_not_known) {
  const Result<Profile> text =
      parse_profile("uptier-profile 1 method 1 2 \"f\" { calls 9 cfg 0 block 1 5 ~50 }");
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->methods.begin()->second.weight_squares, 0u);
  EXPECT_EQ(to_text(*text).find("weight_squares"), std::string::npos);
  EXPECT_EQ(to_tsv(*text, {}).find("weight_squares"), std::string::npos);
}

TEST(WeightSquares, survive_every_form) {
  const Profile profile = of(of_one_block(5, 50, 5, 500));
  EXPECT_EQ(*parse_profile(to_text(profile)), profile);
  EXPECT_EQ(profile_from_tsv(to_tsv(profile, {}))->profile, profile);
}

// Merges in any order and grouping give the same. profile_merge_test tests that law for all fields;
// this test shows that the sum takes part in it.
TEST(WeightSquares, of_merges_do_not_depend_on_order) {
  Generator generator(91);
  for (int round = 0; round < 300; ++round) {
    const auto one = [&] { return of(of_one_block(1, 9, 1, generator.count())); };
    const Profile a = one(), b = one(), c = one();
    Profile left = a, right = b, turned = c;
    merge(left, b);
    merge(left, c);
    merge(right, c);
    Profile whole = a;
    merge(whole, right);
    ASSERT_EQ(left, whole);
    merge(turned, b);
    merge(turned, a);
    ASSERT_EQ(left, turned);
  }
}

}  // namespace
}  // namespace uptier::profile::profile_weights_test
