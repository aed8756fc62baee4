#include <gtest/gtest.h>

#include "tests/trace_samples.h"
#include "uptier/profile.h"

namespace uptier {
namespace {

using test::Generator;

constexpr uint64_t kMax = UINT64_MAX;

Profile merged(Profile a, const Profile& b) {
  merge(a, b);
  return a;
}

Profile single(uint64_t cfg_hash, std::vector<uint64_t> counts, uint64_t calls = 0) {
  MethodProfile method;
  method.name = "f";
  method.schema = Schema::block_schema(static_cast<uint32_t>(counts.size()), cfg_hash);
  method.counts = std::move(counts);
  method.weigh(1);
  method.calls = calls;
  Profile profile;
  profile.methods.emplace(method.key, std::move(method));
  return profile;
}

const MethodProfile& only(const Profile& profile) { return profile.methods.begin()->second; }

TEST(ProfileMerge, is_commutative) {
  Generator generator(11);
  for (int round = 0; round < 2000; ++round) {
    const Profile a = generator.profile(), b = generator.profile();
    ASSERT_EQ(merged(a, b), merged(b, a));
  }
}

TEST(ProfileMerge, is_associative) {
  Generator generator(12);
  for (int round = 0; round < 2000; ++round) {
    const Profile a = generator.profile(), b = generator.profile(), c = generator.profile();
    ASSERT_EQ(merged(merged(a, b), c), merged(a, merged(b, c)));
  }
}

TEST(ProfileMerge, empty_profile_is_the_identity) {
  Generator generator(13);
  for (int round = 0; round < 500; ++round) {
    const Profile a = generator.profile();
    EXPECT_EQ(merged(a, Profile{}), a);
    EXPECT_EQ(merged(Profile{}, a), a);
  }
}

TEST(ProfileMerge, order_of_many_shards_does_not_matter) {
  Generator generator(14);
  std::vector<Profile> shards;
  for (int i = 0; i < 20; ++i) shards.push_back(generator.profile());
  const auto fold = [&shards] {
    Profile sum;
    for (const Profile& shard : shards) merge(sum, shard);
    return sum;
  };
  const Profile first = fold();
  std::mt19937 shuffle(5);
  for (int round = 0; round < 50; ++round) {
    std::ranges::shuffle(shards, shuffle);
    ASSERT_EQ(fold(), first);
  }
}

TEST(ProfileMerge, sums_counts_and_calls) {
  Profile sum = single(1, {1, 2}, 10);
  const MergeReport report = merge(sum, single(1, {10, 20}, 5));
  EXPECT_EQ(only(sum).counts, (std::vector<uint64_t>{11, 22}));
  EXPECT_EQ(only(sum).calls, 15u);
  EXPECT_EQ(report, (MergeReport{0, 1, 0, {}}));
}

TEST(ProfileMerge, saturates_and_counts_it) {
  Profile sum = single(1, {kMax, kMax - 1, 0}, kMax);
  const MergeReport report = merge(sum, single(1, {1, 1, kMax}, 1));
  EXPECT_EQ(only(sum).counts, (std::vector<uint64_t>{kMax, kMax, kMax}));
  EXPECT_EQ(only(sum).calls, kMax);
  EXPECT_EQ(only(sum).estimates, only(sum).counts);
  EXPECT_EQ(report.saturated, 3u);  // one count, its estimate, and calls
}

TEST(ProfileMerge, different_code_is_dropped_and_said_never_mixed) {
  for (const bool swap : {false, true}) {
    Profile sum = single(swap ? 2 : 1, {1, 2}, 10);
    const MergeReport report = merge(sum, single(swap ? 1 : 2, {1, 2}, 10));
    EXPECT_EQ(sum, single(2, {1, 2}, 10));
    EXPECT_EQ(report, (MergeReport{0, 0, 0, {MethodKey{}}}));
  }
}

TEST(ProfileMerge, different_schemas_of_one_code_are_not_mixed) {
  Profile sum = single(1, {1, 2});
  const MergeReport report = merge(sum, single(1, {1, 2, 3}));
  EXPECT_EQ(report.dropped.size(), 1u);
  EXPECT_EQ(sum, single(1, {1, 2, 3}));
}

TEST(ProfileMerge, malformed_method_is_dropped_and_costs_no_other) {
  Profile bad = single(1, {1, 2});
  bad.methods.begin()->second.counts.pop_back();
  MethodProfile good;
  good.key = {9, 9};
  bad.methods.emplace(good.key, good);
  Profile misplaced;
  misplaced.methods.emplace(MethodKey{5, 5}, good);

  Profile sum = single(1, {5, 5});
  EXPECT_EQ(merge(sum, bad), (MergeReport{1, 0, 0, {MethodKey{}}}));
  EXPECT_EQ(only(sum).counts, (std::vector<uint64_t>{5, 5}));
  EXPECT_EQ(merge(sum, misplaced).dropped, (std::vector<MethodKey>{{5, 5}}));
  // A malformed method in the sum gives way.
  EXPECT_EQ(merge(bad, single(1, {5, 5})).dropped.size(), 1u);
  EXPECT_EQ(only(bad).counts, (std::vector<uint64_t>{5, 5}));
}

TEST(ProfileMerge, equal_intervals_stay_and_different_ones_are_mixed) {
  Profile a = single(1, {1}), b = a, c = a;
  a.methods.begin()->second.interval = 16;
  b.methods.begin()->second.interval = 16;
  c.methods.begin()->second.interval = 8;
  EXPECT_EQ(only(merged(a, b)).interval, 16u);
  EXPECT_EQ(only(merged(a, c)).interval, 0u);
  EXPECT_EQ(only(merged(merged(a, c), c)).interval, 0u);
}

TEST(ProfileMerge, reports_add_up) {
  MergeReport sum{1, 2, 3, {{1, 1}}};
  sum += MergeReport{10, 20, 30, {{2, 2}}};
  EXPECT_EQ(sum, (MergeReport{11, 22, 33, {{1, 1}, {2, 2}}}));
}

TEST(ProfileScale, multiplies_exactly_and_rounds_down) {
  Profile profile = single(1, {0, 1, 3, 1000, kMax}, 7);
  const Result<uint64_t> saturated = scale(profile, 1, 2);
  ASSERT_TRUE(saturated.ok());
  EXPECT_EQ(*saturated, 0u);
  EXPECT_EQ(only(profile).counts, (std::vector<uint64_t>{0, 0, 1, 500, kMax / 2}));
  EXPECT_EQ(only(profile).calls, 3u);
}

TEST(ProfileScale, saturates_and_counts_it) {
  Profile profile = single(1, {1, kMax / 2, kMax}, kMax);
  EXPECT_EQ(*scale(profile, 3, 1), 5u);  // two counts, their estimates, and calls
  EXPECT_EQ(only(profile).counts, (std::vector<uint64_t>{3, kMax, kMax}));
  EXPECT_EQ(*scale(profile, kMax, kMax), 0u);
  EXPECT_EQ(only(profile).counts, (std::vector<uint64_t>{3, kMax, kMax}));
}

TEST(ProfileScale, zero_denominator_is_refused_and_changes_nothing) {
  Profile profile = single(1, {5});
  EXPECT_EQ(scale(profile, 1, 0).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(profile, single(1, {5}));
}

TEST(Profile, site_without_a_slot_is_unknown_not_zero) {
  const Profile profile = single(1, {0, 8});
  EXPECT_EQ(only(profile).count(SlotKind::kBlock, 1), 0u);
  EXPECT_EQ(only(profile).count(SlotKind::kBlock, 2), 8u);
  EXPECT_EQ(only(profile).count(SlotKind::kBlock, 3), std::nullopt);
  EXPECT_EQ(only(profile).count(SlotKind::kEdge, 1), std::nullopt);
  EXPECT_EQ(profile.find(MethodKey{}), &only(profile));
  EXPECT_EQ(profile.find(MethodKey{1, 1}), nullptr);
}

}  // namespace
}  // namespace uptier
