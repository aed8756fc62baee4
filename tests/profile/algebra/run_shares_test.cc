// The shares of profiles, and what they rest on.
#include "profile/algebra/run_shares.h"

#include <gtest/gtest.h>

#include <cmath>

namespace uptier::profile::run_shares_test {
namespace {

MethodProfile method(uint32_t function, std::vector<uint64_t> counts, uint64_t weight,
                     uint64_t samples) {
  MethodProfile m;
  m.key.function_index = function;
  m.schema = Schema::block_schema(static_cast<uint32_t>(counts.size()), 7);
  m.counts = std::move(counts);
  m.weigh(weight);
  m.calls = samples * weight;
  m.sampled_calls = samples;
  return m;
}

PathFrame frame(uint32_t function) { return {TimePlace::kMethod, {0, function}}; }

Profile profile_of(std::vector<MethodProfile> methods) {
  Profile p;
  for (MethodProfile& m : methods) {
    const MethodKey key = m.key;
    p.methods.emplace(key, std::move(m));
  }
  return p;
}

TEST(RunShares, counts_of_every_execution_are_exact) {
  const RunShares r =
      count_shares(profile_of({method(1, {30, 10}, 1, 30), method(2, {60}, 1, 60)}));
  EXPECT_DOUBLE_EQ(r.shares.at(frame(1)).share, 0.4);
  EXPECT_DOUBLE_EQ(r.shares.at(frame(2)).share, 0.6);
  EXPECT_TRUE(std::isinf(r.shares.at(frame(1)).observations));
  EXPECT_EQ(r.assumed, 0);
}

// One call in 100 was sampled, half of them took the second block. Method 2 has a single block, so that
// its calls, which are exact, are all its executions.
TEST(RunShares, samples_tell_how_often_a_branch_is_taken) {
  const RunShares r =
      count_shares(profile_of({method(1, {400, 200}, 100, 400), method(2, {600}, 100, 600)}));
  const double busiest = 40000, whole = 120000;
  const double variance = 0.25 * busiest * busiest * (1 - 0.01) / 400;
  const ShareSample& one = r.shares.at(frame(1));
  EXPECT_DOUBLE_EQ(one.share, 0.5);
  EXPECT_NEAR(one.observations, 0.25 / (0.25 * variance / (whole * whole)), 1e-6);
  EXPECT_DOUBLE_EQ(r.shares.at(frame(2)).observations, one.observations);
}

// The start of a run is a smaller part of a longer run, and differences of many runs average out.
TEST(RunShares, what_runs_differ_by_is_assumed_unless_all_was_counted) {
  const Profile sampled = profile_of({method(1, {400}, 100, 400)});
  const auto assumed = [&](double runs, double seconds) {
    return count_shares(sampled, runs, seconds).assumed / (1 - 0.01);
  };
  EXPECT_NEAR(assumed(1, 10), kCountsBetween * (1 + kStartSeconds / 10), 1e-12);
  EXPECT_NEAR(assumed(1, 0), assumed(1, 1), 1e-12);
  EXPECT_NEAR(assumed(20, 200), assumed(1, 10) / 20, 1e-12);
  EXPECT_EQ(count_shares(profile_of({method(1, {400}, 1, 400)}), 1, 10).assumed, 0);
}

TEST(RunShares, samples_of_unequal_weight_are_worth_fewer) {
  MethodProfile equal = method(1, {400, 200}, 100, 400), unequal = equal;
  equal.weight_squares = 400 * 100 * 100;
  unequal.weight_squares = 4 * equal.weight_squares;
  const Profile other = profile_of({method(2, {600}, 100, 600)});
  const auto observations = [&](const MethodProfile& m) {
    Profile p = other;
    p.methods.emplace(m.key, m);
    return count_shares(p).shares.at(frame(1)).observations;
  };
  EXPECT_NEAR(observations(equal), 4 * observations(unequal), 1e-6);
}

TEST(RunShares, guesses_are_off_by_their_size) {
  MethodProfile guessed = method(1, {0}, 1, 0);
  guessed.estimates = {1000};
  guessed.calls = guessed.guessed_calls = 1000;
  const RunShares r = count_shares(profile_of({guessed, method(2, {1000}, 1, 1000)}));
  const ShareSample& s = r.shares.at(frame(1));
  EXPECT_DOUBLE_EQ(s.share, 0.5);
  EXPECT_NEAR(std::sqrt(0.25 / s.observations), 0.25 / 1.96, 1e-9);
}

TEST(RunShares, inlined_bodies_count_for_their_methods_with_the_noise_of_samples) {
  Profile p = profile_of({method(1, {1000}, 1, 1000), method(2, {100}, 1, 100)});
  InlinedBody body;
  body.code = {7, 7};
  body.blocks[1] = {100, 900, 100};
  p.inlined[{{0, 1}, {{5, {0, 2}}}}] = body;
  const RunShares r = count_shares(p);
  EXPECT_DOUBLE_EQ(r.shares.at(frame(2)).share, 0.5);
  EXPECT_LT(r.shares.at(frame(2)).observations, 1000);
  p.inlined.begin()->second.code = {7, 8};  // of other code
  EXPECT_DOUBLE_EQ(count_shares(p).shares.at(frame(2)).share, 1.0 / 11);
}

TEST(RunShares, time_rests_on_its_samples) {
  TimeProfile t;
  for (int i = 0; i < 300; ++i) t.add({frame(1)}, 1, 10'000'000);
  for (int i = 0; i < 100; ++i) t.add({frame(1), {TimePlace::kHost, {}}}, 1, 10'000'000);
  t.squares = 400 * uint64_t{10'000} * 10'000;
  const RunShares r = time_shares(t);
  EXPECT_DOUBLE_EQ(r.shares.at(frame(1)).share, 0.75);
  EXPECT_DOUBLE_EQ(r.shares.at({TimePlace::kHost, {}}).share, 0.25);
  EXPECT_DOUBLE_EQ(r.observations, 400);
  EXPECT_EQ(r.assumed, kTimeBetween);
}

TEST(RunShares, what_a_run_lacks_has_a_share_of_0) {
  const RunShares a = count_shares(profile_of({method(1, {50}, 1, 50), method(2, {50}, 1, 50)}));
  const RunShares b = count_shares(profile_of({method(1, {50}, 1, 50), method(3, {50}, 1, 50)}));
  const RunChanges c = run_changes({a}, {b});
  ASSERT_EQ(c.items.size(), 3u);
  EXPECT_FALSE(c.items[0].change.beyond);
  EXPECT_DOUBLE_EQ(c.items[1].change.moved(), -0.5);
  EXPECT_TRUE(c.items[1].change.beyond);
  EXPECT_DOUBLE_EQ(c.items[2].change.moved(), 0.5);
  EXPECT_TRUE(run_changes({a}, {RunShares{}}).items.empty());
}

}  // namespace
}  // namespace uptier::profile::run_shares_test
