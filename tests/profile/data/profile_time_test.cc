// TimeProfile: sums in any order, scaling, differences, and the time of each frame.
#include "uptier/profile_time.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/random_times.h"

namespace uptier::profile_time_test {
namespace {

const PathFrame kMain{TimePlace::kMethod, {1, 0}}, kSort{TimePlace::kMethod, {1, 1}};
const PathFrame kHost{TimePlace::kHost, {}};

TimeProfile any(std::mt19937_64& random) {
  return test::random_times([&](uint64_t n) { return random() % n; },
                            [&] {
                              return MethodKey{random() % 2, static_cast<uint32_t>(random() % 4)};
                            });
}

TimeProfile sum_of(TimeProfile a, const TimeProfile& b) {
  a += b;
  return a;
}

TEST(ProfileTime, sum_is_associative_and_commutative_and_subtract_undoes_it) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const TimeProfile a = any(random), b = any(random), c = any(random);
    ASSERT_EQ(sum_of(sum_of(a, b), c), sum_of(a, sum_of(b, c)));
    TimeProfile ab = sum_of(a, b);
    ASSERT_EQ(ab, sum_of(b, a));
    ASSERT_EQ(ab.sampled_ns, a.sampled_ns + b.sampled_ns);
    ASSERT_EQ(ab.subtract(b), 0u);
    ASSERT_EQ(ab, a);
  }
}

TEST(ProfileTime, subtract_counts_what_is_missing) {
  TimeProfile a, b;
  a.add({kMain}, 1, 10);
  b.add({kMain}, 1, 11);
  EXPECT_EQ(a.subtract(b), 2u);  // of the path and of the sum
  EXPECT_TRUE(a.empty());
}

TEST(ProfileTime, sums_stop_at_the_greatest_number) {
  TimeProfile a;
  a.add({kMain}, 1, UINT64_MAX - 1);
  a += a;
  EXPECT_EQ(a.root.callees.at(0).ns, UINT64_MAX);
  EXPECT_EQ(a.sampled_ns, UINT64_MAX);
}

TEST(ProfileTime, scale_keeps_the_sum_and_the_number_of_samples_that_weights_are_worth) {
  TimeProfile a;
  for (int i = 0; i < 100; ++i) a.add({kMain, kSort}, 1, 1000000);
  a.add({kMain, kHost}, 1, 1);
  a.squares = 100 * 1000 * 1000;
  const ShareEstimate before = a.share(50000000);
  a.scale(1, 4);
  EXPECT_EQ(a.sampled_ns, 25000000u);  // the host's nanosecond is lost
  EXPECT_EQ(a.root.callees.at(0).callees.size(), 1u);
  const ShareEstimate after = a.share(12500000);
  EXPECT_NEAR(after.low, before.low, 1e-6);
  EXPECT_NEAR(after.high, before.high, 1e-6);
}

TEST(ProfileTime, frames_have_their_own_time_and_that_of_their_callees_once) {
  TimeProfile a;
  a.add({kMain}, 1, 1);
  a.add({kMain, kSort}, 2, 20);
  a.add({kMain, kSort, kSort}, 3, 300);  // recursive: its time is not counted twice
  a.add({kMain, kSort, kSort, kHost}, 4, 4000);
  a.add({kSort}, 5, 50000);
  const std::map<PathFrame, FrameTime> frames = a.by_frame();
  EXPECT_EQ(frames.at(kMain).own_ns, 1u);
  EXPECT_EQ(frames.at(kMain).all_ns, 4321u);
  EXPECT_EQ(frames.at(kSort).own_ns, 50320u);
  EXPECT_EQ(frames.at(kSort).all_ns, 54320u);
  EXPECT_EQ(frames.at(kSort).samples, 10u);
  EXPECT_EQ(frames.at(kHost).own_ns, 4000u);
}

TEST(ProfileTime, a_share_has_the_interval_of_as_many_samples_as_weights_are_worth) {
  TimeProfile a;
  EXPECT_EQ(a.share(0).high, 1);  // there are no samples
  for (int i = 0; i < 100; ++i) a.add({i % 2 == 0 ? kMain : kSort}, 1, 1000);
  a.squares = 100;  // 1 us each
  const ShareEstimate half = a.share(50 * 1000);
  EXPECT_DOUBLE_EQ(half.share, 0.5);
  EXPECT_NEAR(half.low, 0.404, 0.001);  // Wilson's interval of 50 in 100
  EXPECT_NEAR(half.high, 0.596, 0.001);
  a.squares *= 4;  // worth 25 equal samples
  EXPECT_NEAR(a.share(50 * 1000).low, 0.3175, 0.001);
}

}  // namespace
}  // namespace uptier::profile_time_test
