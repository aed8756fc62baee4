#include <gtest/gtest.h>

#include "tests/trace_samples.h"
#include "uptier/profile.h"

namespace uptier {
namespace {

using test::Generator;

void add(Profile& profile, uint32_t function, uint64_t cfg_hash, std::vector<uint64_t> counts) {
  MethodProfile method;
  method.key.function_index = function;
  method.schema = Schema::block_schema(static_cast<uint32_t>(counts.size()), cfg_hash);
  method.counts = std::move(counts);
  method.weigh(1);
  profile.methods.emplace(method.key, std::move(method));
}

TEST(ProfileOverlap, lies_between_0_and_1_and_is_symmetric) {
  Generator generator(21);
  for (int round = 0; round < 2000; ++round) {
    const Profile a = generator.profile(), b = generator.profile();
    const double value = overlap(a, b);
    ASSERT_GE(value, 0);
    ASSERT_LE(value, 1);
    ASSERT_EQ(value, overlap(b, a));
    for (const MethodOverlap& method : compare(a, b).methods) {
      ASSERT_GE(method.value, 0);
      ASSERT_LE(method.value, 1);
    }
  }
}

TEST(ProfileOverlap, profile_is_like_itself_and_like_its_multiples) {
  Generator generator(22);
  for (int round = 0; round < 500; ++round) {
    const Profile a = generator.profile();
    ASSERT_DOUBLE_EQ(overlap(a, a), 1);
  }
  Profile a, b;
  add(a, 0, 1, {1, 2, 3});
  add(b, 0, 1, {1000, 2000, 3000});
  EXPECT_DOUBLE_EQ(overlap(a, b), 1);
}

TEST(ProfileOverlap, is_the_sum_of_the_lesser_shares) {
  Profile a, b;
  add(a, 0, 1, {1, 3});
  add(a, 1, 1, {4});
  add(b, 0, 1, {2, 2});
  add(b, 1, 1, {0});
  // Shares of a: 1/8, 3/8, 4/8; of b: 1/2, 1/2, 0.
  EXPECT_DOUBLE_EQ(overlap(a, b), 0.5);
  const OverlapReport report = compare(a, b);
  ASSERT_EQ(report.methods.size(), 2u);
  EXPECT_DOUBLE_EQ(report.methods[0].value, 0.75);
  EXPECT_DOUBLE_EQ(report.methods[0].share_a, 0.5);
  EXPECT_DOUBLE_EQ(report.methods[0].share_b, 1);
  EXPECT_DOUBLE_EQ(report.methods[1].value, 0);
}

TEST(ProfileOverlap, two_empty_profiles_are_alike_and_one_is_not_like_any_other) {
  Profile counted, zeros;
  add(counted, 0, 1, {1});
  add(zeros, 0, 1, {0});
  EXPECT_EQ(overlap({}, {}), 1);
  EXPECT_EQ(overlap({}, zeros), 1);
  EXPECT_EQ(overlap(zeros, zeros), 1);
  EXPECT_EQ(overlap(counted, {}), 0);
  EXPECT_EQ(overlap({}, counted), 0);
  EXPECT_EQ(overlap(counted, zeros), 0);
}

TEST(ProfileOverlap, shares_of_one_sided_and_mismatched_methods_are_reported) {
  Profile a, b;
  add(a, 0, 1, {5});
  add(b, 0, 1, {1});
  add(a, 1, 1, {2});
  add(b, 1, 2, {4});
  add(a, 2, 1, {3});
  add(b, 3, 1, {5});
  const OverlapReport report = compare(a, b);
  EXPECT_DOUBLE_EQ(report.program.value, 0.1);
  EXPECT_DOUBLE_EQ(report.program.only_a, 0.3);
  EXPECT_DOUBLE_EQ(report.program.only_b, 0.5);
  EXPECT_DOUBLE_EQ(report.program.mismatched_a, 0.2);
  EXPECT_DOUBLE_EQ(report.program.mismatched_b, 0.4);
  ASSERT_EQ(report.methods.size(), 4u);
  EXPECT_FALSE(report.methods[0].mismatched);
  EXPECT_TRUE(report.methods[1].mismatched);
  EXPECT_FALSE(report.methods[2].mismatched);
}

TEST(ProfileOverlap, kinds_are_compared_apart) {
  Profile a, b;
  add(a, 0, 1, {1, 1});
  add(b, 0, 1, {1, 1});
  for (Profile* profile : {&a, &b}) {
    MethodProfile& method = profile->methods.begin()->second;
    method.schema.slots.push_back({SlotKind::kEdge, 1, 2, 1});
    method.schema.slots.push_back({SlotKind::kEdge, 2, 3, 1});
  }
  a.methods.begin()->second.counts = {1, 1, 9, 0};
  b.methods.begin()->second.counts = {1, 1, 0, 9};
  a.methods.begin()->second.weigh(1);
  b.methods.begin()->second.weigh(1);
  const OverlapReport report = compare(a, b);
  ASSERT_EQ(report.kinds.size(), 2u);
  EXPECT_EQ(report.kinds[0].kind, SlotKind::kBlock);
  EXPECT_DOUBLE_EQ(report.kinds[0].overlap.value, 1);
  EXPECT_EQ(report.kinds[1].kind, SlotKind::kEdge);
  EXPECT_DOUBLE_EQ(report.kinds[1].overlap.value, 0);
}

TEST(ProfileOverlap, greatest_counts_do_not_overflow) {
  Profile a, b;
  add(a, 0, 1, {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX});
  add(b, 0, 1, {1, 1, 1, 1});
  EXPECT_DOUBLE_EQ(overlap(a, b), 1);
}

TEST(ProfileOverlap, malformed_methods_do_no_harm) {
  Profile a, b;
  add(a, 0, 1, {1, 2, 3});
  add(b, 0, 1, {1, 2, 3});
  a.methods.begin()->second.estimates.resize(1);
  const double value = overlap(a, b);
  EXPECT_GE(value, 0);
  EXPECT_LE(value, 1);
}

}  // namespace
}  // namespace uptier
