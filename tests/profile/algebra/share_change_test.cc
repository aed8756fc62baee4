// The noise of shares against simulated runs. Odds are stated: seeds are fixed, so a test passes always
// or never.
#include "profile/algebra/share_change.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "profile/algebra/quantile.h"
#include "profile/algebra/run_shares.h"

namespace uptier::profile::share_change_test {
namespace {

using Shares = std::vector<double>;

constexpr int kPairs = 100;
constexpr double kExact = std::numeric_limits<double>::infinity();

Shares normalized(Shares s) {
  const double sum = std::accumulate(s.begin(), s.end(), 0.0);
  for (double& x : s) x /= sum;
  return s;
}

// Shares that fall like 1 / rank.
Shares falling(size_t items) {
  Shares s;
  for (size_t i = 1; i <= items; ++i) s.push_back(1 / static_cast<double>(i));
  return normalized(s);
}

// One item has `share`, the others share the rest as before.
Shares with_share(Shares s, size_t item, double share) {
  const double rest = 1 - s[item];
  for (double& x : s) x *= (1 - share) / rest;
  s[item] = share;
  return s;
}

class Simulated {
 public:
  explicit Simulated(uint64_t seed) : random_(seed) {}

  // Returns a run with this many samples. Its true shares vary around `s` with variance p (1 - p) *
  // between.
  ShareRun run(const Shares& s, int samples, double between = 0) {
    const Shares now = between > 0 ? varied(s, between) : s;
    std::discrete_distribution<size_t> draw(now.begin(), now.end());
    std::vector<int> counts(s.size());
    for (int i = 0; i < samples; ++i) ++counts[draw(random_)];
    ShareRun r;
    for (const int c : counts) {
      r.shares.push_back({static_cast<double>(c) / samples, static_cast<double>(samples)});
    }
    return r;
  }
  std::vector<ShareRun> runs(size_t n, const Shares& s, int samples, double between = 0) {
    std::vector<ShareRun> all;
    for (size_t i = 0; i < n; ++i) all.push_back(run(s, samples, between));
    return all;
  }

 private:
  Shares varied(const Shares& s, double between) {
    Shares now;
    for (const double p : s) {
      now.push_back(std::gamma_distribution<double>(p * (1 / between - 1), 1)(random_));
    }
    return normalized(now);
  }

  std::mt19937_64 random_;
};

bool any_beyond(const ShareChanges& c) {
  return std::ranges::any_of(c.items, &ShareChange::beyond);
}

// Returns how many of 100 pairs have an item beyond the noise.
int pairs_beyond(uint64_t seed, const Shares& s, size_t runs, int samples, double between = 0) {
  Simulated simulated(seed);
  int beyond = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    const auto a = simulated.runs(runs, s, samples, between);
    const auto b = simulated.runs(runs, s, samples, between);
    beyond += any_beyond(share_changes(a, b)) ? 1 : 0;
  }
  return beyond;
}

// Returns in how many of 100 pairs the change of item 0's share is found.
int pairs_found(uint64_t seed, double from, double to, size_t runs, int samples,
                double between = 0) {
  Simulated simulated(seed);
  const Shares before = with_share(falling(15), 0, from), after = with_share(before, 0, to);
  int found = 0;
  for (int pair = 0; pair < kPairs; ++pair) {
    const auto a = simulated.runs(runs, before, samples, between);
    const auto b = simulated.runs(runs, after, samples, between);
    found += share_changes(a, b).items[0].beyond ? 1 : 0;
  }
  return found;
}

TEST(ShareChange, equal_shares_lie_beyond_the_noise_in_at_most_ten_of_a_hundred_pairs) {
  for (const int samples : {50, 1000, 10000}) {
    EXPECT_LE(pairs_beyond(1, falling(2), 1, samples), 10) << samples;
    EXPECT_LE(pairs_beyond(2, falling(20), 1, samples), 10) << samples;
    EXPECT_LE(pairs_beyond(3, falling(2000), 1, samples), 10) << samples;
  }
}

// A program of 10 s has 1,000 stack samples at 100 Hz.
TEST(ShareChange, five_points_more_of_a_small_share_are_found_by_the_samples_of_ten_seconds) {
  EXPECT_GE(pairs_found(4, 0.02, 0.07, 1, 1000), 90);
  EXPECT_GE(pairs_found(5, 0.00, 0.05, 1, 1000), 90);
  EXPECT_GE(pairs_found(6, 0.07, 0.02, 1, 1000), 90);
}

// A greater share has more noise: it takes more samples.
TEST(ShareChange, five_points_more_of_a_great_share_are_found_by_the_samples_of_a_minute) {
  EXPECT_GE(pairs_found(7, 0.30, 0.35, 1, 6000), 90);
  EXPECT_LE(pairs_found(8, 0.30, 0.35, 1, 500), 50);
  EXPECT_GE(pairs_found(9, 0.30, 0.35, 6, 1000), 90);
}

// Counts of 10 s by default: samples that are worth 20,000 draws, runs that differ by less than is assumed.
TEST(ShareChange, five_points_more_of_any_share_are_found_by_counts) {
  constexpr double kAssumed = kCountsBetween * (1 + kStartSeconds / 10);
  for (const double from : {0.02, 0.10, 0.30, 0.45}) {
    Simulated simulated(15);
    const Shares before = with_share(falling(15), 0, from),
                 after = with_share(before, 0, from + 0.05);
    int found = 0, wrong = 0;
    for (int pair = 0; pair < kPairs; ++pair) {
      ShareRun a = simulated.run(before, 20000, 5e-5), b = simulated.run(after, 20000, 5e-5);
      ShareRun again = simulated.run(before, 20000, 5e-5);
      a.assumed = b.assumed = again.assumed = kAssumed;
      found += share_changes(std::span(&a, 1), std::span(&b, 1)).items[0].beyond ? 1 : 0;
      wrong += any_beyond(share_changes(std::span(&a, 1), std::span(&again, 1))) ? 1 : 0;
    }
    EXPECT_GE(found, 90) << from;
    EXPECT_LE(wrong, 10) << from;
  }
}

TEST(ShareChange, runs_that_differ_among_themselves_widen_the_noise) {
  constexpr double kBetween = 5e-3;
  EXPECT_LE(pairs_beyond(10, falling(20), 2, 1000, kBetween), 10);
  EXPECT_LE(pairs_beyond(11, falling(20), 3, 1000, kBetween), 10);
  EXPECT_LE(pairs_beyond(12, falling(20), 8, 1000, kBetween), 10);
  // One run on each side cannot know that.
  EXPECT_GE(pairs_beyond(13, falling(20), 1, 1000, kBetween), 30);
  // And it does not hide a change.
  EXPECT_GE(pairs_found(14, 0.05, 0.10, 8, 1000, 1e-3), 90);
}

TEST(ShareChange, what_is_assumed_of_runs_counts_where_they_tell_nothing) {
  ShareRun a{1, 0, {{0.30, kExact}, {0.70, kExact}}}, b{1, 0, {{0.31, kExact}, {0.69, kExact}}};
  EXPECT_TRUE(any_beyond(share_changes(std::span(&a, 1), std::span(&b, 1))));
  a.assumed = b.assumed = 1e-3;
  const ShareChanges c = share_changes(std::span(&a, 1), std::span(&b, 1));
  EXPECT_FALSE(any_beyond(c));
  EXPECT_NEAR(c.items[0].usual, std::sqrt(2e-3 * 0.305 * 0.695), 1e-6);
}

TEST(ShareChange, exact_shares_have_no_noise) {
  const ShareRun a{1, 0, {{0.25, kExact}, {0.75, kExact}}};
  const ShareRun b{1, 0, {{0.2500001, kExact}, {0.7499999, kExact}}};
  EXPECT_FALSE(any_beyond(share_changes(std::span(&a, 1), std::span(&a, 1))));
  const ShareChanges c = share_changes(std::span(&a, 1), std::span(&b, 1));
  EXPECT_TRUE(c.items[0].beyond);
  EXPECT_EQ(c.tested, 0u);
}

TEST(ShareChange, rarely_seen_items_do_not_widen_the_noise_of_others) {
  ShareRun few{1, 0, {{0.5, 10000}, {0.5, 10000}}};
  ShareRun many = few;
  many.shares[1].share = 0.4;
  for (int i = 0; i < 1000; ++i) many.shares.push_back({0.0001, 10000});
  const ShareChanges a = share_changes(std::span(&few, 1), std::span(&few, 1));
  const ShareChanges b = share_changes(std::span(&many, 1), std::span(&many, 1));
  EXPECT_EQ(a.tested, 2u);
  EXPECT_EQ(b.tested, 2u);
  EXPECT_EQ(a.items[0].noise, b.items[0].noise);
}

TEST(ShareChange, noise_is_that_of_the_formula) {
  const ShareRun a{1, 1e-3, {{0.5, 100}, {0.5, 100}}}, b{1, 3e-3, {{0.5, 400}, {0.5, 400}}};
  const ShareChanges c = share_changes(std::span(&a, 1), std::span(&b, 1));
  const double inverse = 1.0 / 100 + 1.0 / 400, usual = std::sqrt(0.25 * (inverse + 2 * 2e-3));
  EXPECT_NEAR(c.items[0].usual, usual, 1e-9);
  EXPECT_NEAR(c.items[0].noise, normal_point(0.05 / 4) * usual + inverse / 2, 1e-9);
}

// More observations, less noise; a longer run counts for more.
TEST(ShareChange, runs_are_weighted) {
  const std::vector<ShareRun> a = {{3, 0, {{0.2, 3000}, {0.8, 3000}}},
                                   {1, 0, {{0.6, 1000}, {0.4, 1000}}}};
  const ShareRun b{1, 0, {{0.3, 4000}, {0.7, 4000}}};
  EXPECT_NEAR(share_changes(a, std::span(&b, 1)).items[0].before, 0.3, 1e-12);
  const ShareRun same{1, 0, {{0.3, 1000}, {0.7, 1000}}};
  EXPECT_LT(share_changes(std::span(&b, 1), std::span(&b, 1)).items[0].noise,
            share_changes(std::span(&same, 1), std::span(&b, 1)).items[0].noise);
}

TEST(Quantile, points_are_those_of_tables) {
  EXPECT_NEAR(normal_point(0.025), 1.959964, 1e-6);
  EXPECT_NEAR(normal_point(0.0005), 3.290527, 1e-6);
  EXPECT_NEAR(normal_point(0.5), 0, 1e-6);
  EXPECT_NEAR(student_point(0.025, 1), 12.7062, 1e-4);
  EXPECT_NEAR(student_point(0.025, 2), 4.302653, 1e-6);
  EXPECT_NEAR(student_point(0.025, 4), 2.776445, 1e-6);
  EXPECT_NEAR(student_point(0.005, 9), 3.249836, 1e-6);
  EXPECT_NEAR(student_point(0.0005, 12), 4.317791, 1e-6);
  EXPECT_NEAR(student_point(0.025, 1000), 1.962339, 1e-6);
}

}  // namespace
}  // namespace uptier::profile::share_change_test
