#include "sampler/gap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace uptier::sampler::gap_test {
namespace {

constexpr GapKind kKinds[] = {GapKind::kRandom, GapKind::kFixed, GapKind::kPrime};
constexpr uint32_t kLongestGap = 0x7fffffff;

// Returns the value that a chi-square statistic of `degrees` exceeds with the odds of four standard
// deviations, 1 in 31,000 (Wilson and Hilferty 1931).
double chi_square_bound(double degrees) {
  double v = 2 / (9 * degrees);
  double root = 1 - v + 4 * std::sqrt(v);
  return degrees * root * root * root;
}

// Returns the chi-square statistic of gaps against the geometric law of a mean, over `buckets`
// buckets of equal width and one for the rest.
double chi_square(const std::vector<uint32_t>& gaps, double mean, int buckets) {
  auto width = static_cast<uint32_t>(std::max(1.0, 3 * mean / buckets));
  std::vector<double> seen(buckets + 1);
  for (uint32_t g : gaps) seen[std::min<uint32_t>((g - 1) / width, buckets)]++;
  double share_left = 1, statistic = 0;
  for (int b = 0; b <= buckets; ++b) {
    double share = b == buckets ? share_left : share_left * (1 - std::pow(1 - 1 / mean, width));
    share_left -= share;
    double expected = share * static_cast<double>(gaps.size());
    statistic += (seen[b] - expected) * (seen[b] - expected) / expected;
  }
  return statistic;
}

std::vector<uint32_t> draw_gaps(size_t count, const std::function<uint32_t(double)>& gap) {
  std::vector<uint32_t> gaps(count);
  uint64_t random = 20;
  for (uint32_t& g : gaps) g = gap(to_unit(next_random(random)));
  return gaps;
}

TEST(Gap, random_gaps_have_the_mean_within_4_sigma) {
  for (uint32_t mean : {2u, 3u, 7u, 16u, 64u, 1000u, 1u << 20}) {
    constexpr size_t kCount = 400'000;
    double sum = 0;
    for (uint32_t g : draw_gaps(kCount, [&](double u) { return next_gap(mean, u); })) sum += g;
    double m = mean;
    double sigma = std::sqrt(m * (m - 1) / kCount);  // of the mean of kCount geometric gaps
    EXPECT_NEAR(sum / kCount, m, 4 * sigma) << mean;
  }
}

TEST(Gap, random_gaps_are_geometric_at_odds_of_1_to_31000) {
  for (uint32_t mean : {2u, 3u, 7u, 16u, 64u, 1000u}) {
    auto gaps = draw_gaps(400'000, [&](double u) { return next_gap(mean, u); });
    int buckets = static_cast<int>(std::min(3 * mean, 30u));
    EXPECT_LT(chi_square(gaps, mean, buckets), chi_square_bound(buckets)) << mean;
  }
}

TEST(Gap, chi_square_sees_other_laws_of_the_same_mean) {
  auto uniform = draw_gaps(400'000, [](double u) { return 1 + static_cast<uint32_t>(31 * u); });
  EXPECT_GT(chi_square(uniform, 16, 30), chi_square_bound(30));
  auto fixed = draw_gaps(400'000, [](double) { return 16u; });
  EXPECT_GT(chi_square(fixed, 16, 30), chi_square_bound(30));
  auto one_off = draw_gaps(400'000, [](double u) { return next_gap(17, u); });
  EXPECT_GT(chi_square(one_off, 16, 30), chi_square_bound(30));
}

TEST(Gap, successive_random_gaps_are_not_correlated) {
  constexpr size_t kCount = 400'000;
  auto gaps = draw_gaps(kCount, [](double u) { return next_gap(16, u); });
  double covariance = 0;
  for (size_t i = 1; i < kCount; ++i) covariance += (gaps[i - 1] - 16.0) * (gaps[i] - 16.0);
  double correlation = covariance / (kCount - 1) / (16 * 15);
  EXPECT_NEAR(correlation, 0, 4 / std::sqrt(kCount));
}

TEST(Gap, gap_lies_between_1_and_2_to_the_31) {
  const double largest = to_unit(UINT64_MAX);
  ASSERT_LT(largest, 1);
  for (uint32_t mean : {0u, 1u, 2u, 3u, 16u, 1u << 20, 1u << 30, kLongestGap, UINT32_MAX}) {
    uint32_t last = 1;
    for (double u : {0.0, 0x1p-53, 0.1, 0.3, 0.39, 0.41, 0.5, 0.9, 0.999999, largest}) {
      uint32_t gap = next_gap(mean, u);
      EXPECT_GE(gap, last) << "a larger draw is a longer gap, mean " << mean << " u " << u;
      EXPECT_LE(gap, kLongestGap) << mean << " " << u;
      last = gap;
    }
  }
  EXPECT_EQ(next_gap(16, 0), 1u);
  EXPECT_EQ(next_gap(UINT32_MAX, largest), kLongestGap);
}

TEST(Gap, interval_1_is_always_1) {
  for (GapKind kind : kKinds) {
    GapLaw law = GapLaw::make(kind, 1);
    uint64_t random = 5;
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(law.draw(random), 1u);
  }
  EXPECT_EQ(next_gap(1, 0), 1u);
  EXPECT_EQ(next_gap(1, to_unit(UINT64_MAX)), 1u);
}

TEST(Gap, fixed_gaps_are_the_interval_and_prime_gaps_the_nearest_prime) {
  for (uint32_t interval = 1; interval <= 2000; ++interval) {
    uint64_t random = interval;
    ASSERT_EQ(GapLaw::make(GapKind::kFixed, interval).draw(random), interval);
    ASSERT_EQ(GapLaw::make(GapKind::kPrime, interval).draw(random), nearest_prime(interval));
  }
}

TEST(Gap, random_law_draws_as_next_gap_does_and_repeats_with_its_seed) {
  GapLaw law = GapLaw::make(GapKind::kRandom, 16);
  uint64_t a = 42, b = 42, c = 43;
  int differ = 0;
  for (int i = 0; i < 1000; ++i) {
    uint32_t gap = law.draw(a);
    ASSERT_EQ(gap, next_gap(16, to_unit(next_random(b))));
    differ += gap != law.draw(c);
  }
  EXPECT_GT(differ, 500) << "another seed is another stream";
}

TEST(Gap, integer_logarithm_is_within_3_millionths) {
  uint64_t random = 3;
  double worst = 0, sum = 0;
  constexpr int kCount = 1'000'000;
  for (int i = 0; i < kCount; ++i) {
    uint64_t bits = next_random(random) | (i % 64 == 0 ? ~uint64_t{0} << (i / 64 % 64) : 0);
    double exact = -std::log2(static_cast<double>(~bits | 1) * 0x1p-64);
    double error = static_cast<double>(minus_log2(bits)) * 0x1p-56 - exact;
    worst = std::max(worst, std::abs(error));
    sum += error;
  }
  EXPECT_LT(worst, 2.9e-6);
  EXPECT_GT(worst, 2.0e-6) << "the bound is tight";
  EXPECT_LT(std::abs(sum / kCount), 2.5e-6);
  EXPECT_EQ(minus_log2(uint64_t{1} << 63) >> 56, 1u) << "-log2(1/2)";
  EXPECT_EQ(minus_log2(UINT64_MAX), uint64_t{64} << 56) << "the smallest 1 - u";
}

// Computes, without sampling, the mean of the gaps that a law draws: the sum over k of P(gap > k).
// Each probability is found by bisection over the 64 bits, for which draw() is monotonic.
double computed_mean(const GapLaw& law) {
  auto gap_of = [&](uint64_t bits) {
    auto product = static_cast<unsigned __int128>(minus_log2(bits)) * law.scale;
    return 1 + static_cast<uint64_t>(product >> 88);
  };
  double mean = 0;
  for (uint64_t k = 0;; ++k) {
    uint64_t low = 0, high = UINT64_MAX;  // the first bits whose gap is above k
    if (gap_of(high) <= k) break;
    while (low < high) {
      uint64_t middle = low + (high - low) / 2;
      if (gap_of(middle) > k)
        high = middle;
      else
        low = middle + 1;
    }
    double share = static_cast<double>(~low) * 0x1p-64 + 0x1p-64;
    mean += share;
    if (share < 1e-12) break;
  }
  return mean;
}

TEST(Gap, mean_of_integer_gaps_is_the_interval_within_10_millionths) {
  // The required bound is 1e-3; the table's chords allow 3e-6.
  for (uint32_t mean : {2u, 3u, 5u, 7u, 16u, 17u, 64u, 100u, 1000u}) {
    EXPECT_NEAR(computed_mean(GapLaw::make(GapKind::kRandom, mean)) / mean, 1, 1e-5) << mean;
  }
}

TEST(Gap, integer_gaps_are_geometric_at_odds_of_1_to_31000) {
  for (uint32_t mean : {2u, 3u, 7u, 16u, 64u, 1000u, 1u << 20, 1u << 27}) {
    GapLaw law = GapLaw::make(GapKind::kRandom, mean);
    uint64_t random = mean;
    std::vector<uint32_t> gaps(400'000);
    double sum = 0;
    for (uint32_t& g : gaps) sum += g = law.draw(random);
    double m = mean;
    EXPECT_NEAR(sum / 400'000, m, 4 * std::sqrt(m * (m - 1) / 400'000)) << mean;
    int buckets = static_cast<int>(std::min(3 * mean, 30u));
    EXPECT_LT(chi_square(gaps, mean, buckets), chi_square_bound(buckets)) << mean;
  }
}

TEST(Gap, nearest_prime_agrees_with_a_sieve) {
  constexpr uint32_t kLimit = 20'000;
  std::vector<bool> composite(kLimit + 200);
  std::vector<uint32_t> primes;
  for (uint32_t i = 2; i < composite.size(); ++i) {
    if (composite[i]) continue;
    primes.push_back(i);
    for (size_t j = size_t{2} * i; j < composite.size(); j += i) composite[j] = true;
  }
  for (uint32_t n = 2; n <= kLimit; ++n) {
    auto closer = [n](uint32_t a, uint32_t b) {  // a tie goes to the first, which is the smaller
                                                 // one
      return std::abs(int64_t{a} - n) < std::abs(int64_t{b} - n);
    };
    ASSERT_EQ(nearest_prime(n), *std::min_element(primes.begin(), primes.end(), closer)) << n;
  }
}

TEST(Gap, nearest_prime_at_its_edges) {
  EXPECT_EQ(nearest_prime(0), 1u);
  EXPECT_EQ(nearest_prime(1), 1u);
  EXPECT_EQ(nearest_prime(2), 2u);
  EXPECT_EQ(nearest_prime(4), 3u) << "3 and 5 are equally near";
  EXPECT_EQ(nearest_prime(16), 17u);
  EXPECT_EQ(nearest_prime(64), 61u) << "61 and 67 are equally near";
  EXPECT_EQ(nearest_prime(1u << 20), 1048573u);
  EXPECT_EQ(nearest_prime(1u << 30), 1073741827u);
  EXPECT_EQ(nearest_prime(1u << 31), 2147483647u);
}

TEST(Gap, generator_is_splitmix64) {
  // The reference sequence of the published generator for the seed 1234567.
  uint64_t state = 1234567;
  for (uint64_t expected : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                            4593380528125082431u, 16408922859458223821u}) {
    EXPECT_EQ(next_random(state), expected);
  }
}

TEST(Gap, unit_draws_lie_in_0_to_1_and_fill_it_evenly) {
  EXPECT_EQ(to_unit(0), 0);
  EXPECT_EQ(to_unit(uint64_t{1} << 63), 0.5);
  EXPECT_LT(to_unit(UINT64_MAX), 1);
  uint64_t random = 9;
  std::vector<double> seen(16);
  constexpr int kCount = 160'000;
  for (int i = 0; i < kCount; ++i) seen[static_cast<size_t>(16 * to_unit(next_random(random)))]++;
  double statistic = 0;
  for (double n : seen) statistic += (n - kCount / 16) * (n - kCount / 16) / (kCount / 16);
  EXPECT_LT(statistic, chi_square_bound(15));
}

}  // namespace
}  // namespace uptier::sampler::gap_test
