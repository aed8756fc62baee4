#include "sampler/convergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "sampler/gap.h"

namespace uptier::sampler::convergence_test {
namespace {

using Shares = std::vector<double>;

double distance(const Shares& a, const Shares& b) {
  double d = 0;
  for (size_t i = 0; i < a.size(); ++i) d += std::abs(a[i] - b[i]) / 2;
  return d;
}

Shares normalized(Shares s) {
  double total = std::accumulate(s.begin(), s.end(), 0.0);
  for (double& x : s) x /= total;
  return s;
}

// A stream of samples; each adds to the counts of a method's sites.
struct Stream {
  const char* name;
  Shares truth;  // shares of the sites
  std::function<void(uint64_t& random, std::vector<uint64_t>& counts)> sample;
};

// Each sample is one draw.
Stream draws(const char* name, Shares shares) {
  shares = normalized(std::move(shares));
  Shares until(shares.size());
  std::partial_sum(shares.begin(), shares.end(), until.begin());
  auto sample = [until](uint64_t& random, std::vector<uint64_t>& counts) {
    double u = to_unit(next_random(random));
    auto i = std::upper_bound(until.begin(), until.end(), u) - until.begin();
    ++counts[std::min<size_t>(static_cast<size_t>(i), until.size() - 1)];
  };
  return {name, shares, sample};
}

Stream zipf() {
  Shares s(20);
  for (size_t i = 0; i < s.size(); ++i) s[i] = 1.0 / static_cast<double>(i + 1);
  return draws("zipf", s);
}

// Each sample takes one of two paths of four blocks; the second has probability `share`.
Stream paths(const char* name, double share) {
  Shares truth(8);
  for (size_t i = 0; i < 8; ++i) truth[i] = (i < 4 ? 1 - share : share) / 4;
  auto sample = [share](uint64_t& random, std::vector<uint64_t>& counts) {
    size_t from = to_unit(next_random(random)) < share ? 4 : 0;
    for (size_t i = from; i < from + 4; ++i) ++counts[i];
  };
  return {name, truth, sample};
}

// One sample in four is a burst of 32 iterations that all take the same branch; the others are
// calls.
Stream bursts() {
  Shares truth = normalized({0.75, 0.25 * 32 * 0.7, 0.25 * 32 * 0.3, 0.25 * 32});
  auto sample = [](uint64_t& random, std::vector<uint64_t>& counts) {
    if (next_random(random) % 4 != 0) {
      ++counts[0];
      return;
    }
    counts[to_unit(next_random(random)) < 0.7 ? 1 : 2] += 32;
    counts[3] += 32;
  };
  return {"bursts", truth, sample};
}

Stream straight() {
  auto sample = [](uint64_t&, std::vector<uint64_t>& counts) {
    for (uint64_t& c : counts) ++c;
  };
  return {"straight", Shares(10, 0.1), sample};
}

std::vector<Stream> streams() {
  return {zipf(),
          draws("even", Shares(10, 1)),
          paths("two paths", 0.4),
          paths("rare path", 0.001),
          bursts(),
          straight()};
}

Window make_window(const Stream& s, uint64_t samples, uint64_t& random, uint32_t weight = 1) {
  Window w;
  w.counts.resize(s.truth.size());
  w.samples = samples;
  w.weight = weight;
  for (uint64_t i = 0; i < samples; ++i) s.sample(random, w.counts);
  return w;
}

// Adds flushes of 50 samples until convergence; returns the number of samples.
uint64_t converge(Convergence& c, const Stream& s, uint64_t& random, Shares* profile = nullptr,
                  uint64_t limit = 1'000'000) {
  uint64_t samples = 0;
  Shares all(s.truth.size());
  while (!c.converged() && samples < limit) {
    Window w = make_window(s, 50, random);
    for (size_t i = 0; i < all.size(); ++i) all[i] += static_cast<double>(w.counts[i]);
    c.add(w);
    samples += 50;
  }
  if (profile != nullptr) *profile = normalized(all);
  return samples;
}

TEST(Convergence, stationary_streams_converge_within_the_predicted_samples_and_rightly) {
  constexpr int kSeeds = 200;
  for (const Stream& s : streams()) {
    int wrong = 0, restarts = 0;
    double predicted = 0, used = 0, most = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      uint64_t random = static_cast<uint64_t>(seed) * 7919;
      Convergence c;
      Shares profile;
      double samples = static_cast<double>(converge(c, s, random, &profile));
      ASSERT_TRUE(c.converged()) << s.name;
      restarts += c.drifts() > 0;
      EXPECT_LT(c.error_bound(), 0.02);
      wrong += distance(profile, s.truth) >= 0.02;
      used += samples / kSeeds;
      predicted += c.needed() / kSeeds;
      if (c.drifts() == 0) most = std::max(most, samples / std::max(500.0, c.needed()));
    }
    // Windows hold an eighth and flushes 50, so five windows are 500 samples. needed() is the
    // prediction at the end; earlier predictions differ.
    EXPECT_LT(most, 1.5) << s.name;
    EXPECT_LE(wrong, kSeeds * 0.05) << s.name << ": the bound is one of 95 %";
    EXPECT_LE(restarts, kSeeds / 100) << s.name;
    RecordProperty(s.name, std::to_string(used));
  }
}

TEST(Convergence, samples_of_single_draws_are_predicted_from_the_shares_alone) {
  for (const Stream& s : {zipf(), draws("even", Shares(10, 1)), draws("two", {1, 2})}) {
    double rho0 = multinomial_noise(s.truth);
    // The mean of 16 windows is inflated by 0.756 / 4.
    double predicted = samples_needed(1.189 * rho0, rho0, {});
    double used = 0;
    for (int seed = 1; seed <= 50; ++seed) {
      uint64_t random = static_cast<uint64_t>(seed) * 104'729;
      Convergence c;
      used += static_cast<double>(converge(c, s, random)) / 50;
    }
    EXPECT_LT(used / predicted, 1.25) << s.name;
    EXPECT_GT(used / predicted, 0.7) << s.name;
  }
}

TEST(Convergence, distance_of_two_windows_is_what_formula_1_says) {
  for (const Stream& s : {zipf(), draws("even", Shares(10, 1)), draws("two", {1, 2})}) {
    double sum = 0;
    uint64_t random = 17;
    constexpr int kPairs = 2000;
    for (int i = 0; i < kPairs; ++i) {
      Shares a(s.truth.size()), b(s.truth.size());
      Window wa = make_window(s, 500, random), wb = make_window(s, 1500, random);
      for (size_t k = 0; k < a.size(); ++k) {
        a[k] = static_cast<double>(wa.counts[k]) / 500;
        b[k] = static_cast<double>(wb.counts[k]) / 1500;
      }
      sum += distance(a, b);
    }
    double expected = multinomial_noise(s.truth) * std::sqrt(1 / 500.0 + 1 / 1500.0);
    EXPECT_NEAR(sum / kPairs / expected, 1, 0.05) << s.name;
  }
}

TEST(Convergence, drift_is_not_seen_where_there_is_none) {
  constexpr int kSeeds = 1000, kProbes = 5;
  for (const Stream& s : streams()) {
    int false_ones = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      uint64_t random = static_cast<uint64_t>(seed) * 15'485'863;
      Convergence c;
      converge(c, s, random);
      for (int i = 0; i < kProbes && c.converged(); ++i) {
        false_ones += c.add(make_window(s, 1024, random)) == Verdict::kDrifted;
      }
    }
    // Below 1e-3 per test.
    EXPECT_LE(false_ones, kSeeds * kProbes / 1000) << s.name;
    RecordProperty(s.name, false_ones);
  }
}

// Two phases with distance `d`.
std::pair<Stream, Stream> phases(double d) {
  Shares a(10, 0.1), b = a;
  for (size_t i = 0; i < 10; ++i) b[i] += (i < 5 ? d : -d) / 5;
  return {draws("before", a), draws("after", b)};
}

TEST(Convergence, drift_is_seen_in_the_first_two_windows_of_a_new_phase) {
  constexpr int kSeeds = 100;
  auto [before, after] = phases(0.2);
  int seen = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    uint64_t random = static_cast<uint64_t>(seed) * 32'452'843;
    Convergence c;
    converge(c, before, random);
    // The change happens in the middle of a probe.
    c.add(make_window(before, 600, random));
    Verdict v = c.add(make_window(after, 424, random));
    if (v != Verdict::kDrifted) v = c.add(make_window(after, 1024, random));
    seen += v == Verdict::kDrifted;
    if (v != Verdict::kDrifted) continue;
    EXPECT_FALSE(c.converged());
    Shares profile;
    uint64_t samples = converge(c, after, random, &profile);
    EXPECT_TRUE(c.converged());
    EXPECT_LT(distance(profile, after.truth), 0.02);
    EXPECT_LT(samples, 40'000u);
  }
  EXPECT_GE(seen, 99);
}

TEST(Convergence, drift_is_seen_while_learning_within_a_third_of_what_was_known) {
  constexpr int kSeeds = 100;
  for (uint64_t known : {2000u, 8000u}) {
    auto [before, after] = phases(known == 2000 ? 0.4 : 0.3);
    int seen = 0;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      uint64_t random = static_cast<uint64_t>(seed) * 49'979'687;
      Convergence c;
      for (uint64_t n = 0; n < known; n += 50) c.add(make_window(before, 50, random));
      EXPECT_EQ(c.drifts(), 0u);
      for (uint64_t n = 0; n < known / 3 && c.drifts() == 0; n += 50) {
        c.add(make_window(after, 50, random));
      }
      seen += c.drifts() > 0;
    }
    EXPECT_GE(seen, 95) << known;
  }
}

TEST(Convergence, windows_are_compared_also_once_it_is_known) {
  uint64_t random = 5;
  Stream s = paths("p", 0.4);
  Convergence c;
  converge(c, s, random);
  uint32_t before = c.compared();
  EXPECT_EQ(c.add(make_window(s, 1000, random)), Verdict::kConverged);
  EXPECT_EQ(c.compared(), before) << "not a whole window yet";
  EXPECT_EQ(c.add(make_window(s, 100, random)), Verdict::kConverged);
  EXPECT_EQ(c.compared(), before + 1);
}

TEST(Convergence, change_too_small_to_matter_is_not_drift) {
  auto [before, after] = phases(0.015);
  uint64_t random = 5;
  ConvergenceOptions options;
  options.probe_samples = 200'000;
  Convergence c(options);
  converge(c, before, random);
  EXPECT_NE(c.add(make_window(after, 200'000, random)), Verdict::kDrifted);
  EXPECT_GT(c.last_distance(), 0.005) << "it is seen";
}

TEST(Convergence, epsilon_that_changes_is_what_is_known_from_then_on) {
  uint64_t random = 17;
  const Stream s = draws("even", Shares(10, 1));
  Convergence c;
  c.set_epsilon(0.1);
  converge(c, s, random);
  ASSERT_TRUE(c.converged());
  const double samples = c.samples(), bound = c.error_bound();
  EXPECT_LT(bound, 0.1);
  EXPECT_GT(bound, 0.02) << "sooner than by default";

  c.set_epsilon(0.02);
  EXPECT_FALSE(c.converged());
  EXPECT_EQ(c.samples(), samples) << "nothing is lost";
  converge(c, s, random);
  ASSERT_TRUE(c.converged());
  EXPECT_EQ(c.drifts(), 0u);
  EXPECT_GT(c.samples(), samples);
  EXPECT_LT(c.error_bound(), 0.02);

  c.set_epsilon(0.001);
  EXPECT_FALSE(c.converged());
  c.set_epsilon(0.05);
  EXPECT_TRUE(c.converged());
  EXPECT_EQ(c.add(make_window(s, 1, random)), Verdict::kConverged) << "and it says so";
}

TEST(Convergence, samples_of_unlike_weights_count_for_fewer) {
  Stream s = zipf();
  uint64_t random = 8;
  Convergence equal, mixed;
  for (int i = 0; i < 100; ++i) {
    equal.add(make_window(s, 100, random, 16));
    mixed.add(make_window(s, 100, random, i % 2 == 0 ? 1 : 16));
  }
  EXPECT_GT(equal.samples(), 8000);
  EXPECT_LT(mixed.samples(), equal.samples() * 0.7);
  EXPECT_GT(mixed.error_bound(), equal.error_bound());
}

TEST(Convergence, edges) {
  Convergence c;
  EXPECT_EQ(c.add({}), Verdict::kMore);
  EXPECT_EQ(c.error_bound(), 1.0);
  Window off{{5, 5}, 10, 0};
  EXPECT_EQ(c.add(off), Verdict::kMore) << "weight 0: nothing was sampled";
  EXPECT_EQ(c.samples(), 0);
  // A method with one site, or with none, is known at once, after enough windows.
  for (size_t sites : {0u, 1u}) {
    Convergence one;
    Window w{std::vector<uint64_t>(sites, 64), 64, 1};
    Verdict v = Verdict::kMore;
    for (int i = 0; i < 5; ++i) v = one.add(w);
    EXPECT_EQ(v, Verdict::kConverged);
  }
  EXPECT_EQ(multinomial_noise({}), 0);
  EXPECT_NEAR(multinomial_noise(Shares{1, 1}), 2 * 0.5 / std::sqrt(2 * M_PI), 1e-12);
}

}  // namespace
}  // namespace uptier::sampler::convergence_test
