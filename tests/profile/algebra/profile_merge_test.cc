#include <gtest/gtest.h>

#include "tests/support/trace_samples.h"
#include "uptier/profile.h"

namespace uptier::profile_merge_test {
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

TEST(ProfileMerge, what_is_taken_is_merged_as_what_is_copied) {
  Generator generator(15);
  for (int round = 0; round < 500; ++round) {
    const Profile a = generator.profile();
    Profile b = generator.profile(), copied = a, taken = a;
    if (!b.methods.empty() && generator.chance(3)) b.methods.begin()->second.counts.pop_back();
    const MergeReport report = merge(copied, b);
    ASSERT_EQ(merge(taken, std::move(b)), report);
    ASSERT_EQ(taken, copied);
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

TEST(ProfileMerge, different_code_is_kept_apart_and_that_of_the_later_run_counts) {
  Profile older = single(9, {1, 2}, 10), newer = single(1, {3, 4, 5}, 20);
  older.methods.begin()->second.time = 100;
  newer.methods.begin()->second.time = 200;
  for (const bool swap : {false, true}) {
    Profile sum = swap ? newer : older;
    const MergeReport report = merge(sum, swap ? older : newer);
    EXPECT_EQ(sum.methods, newer.methods);
    ASSERT_EQ(sum.other_code.size(), 1u);
    EXPECT_EQ(sum.other_code.at({MethodKey{}, 9}), only(older));
    EXPECT_EQ(report, (MergeReport{0, 0, 0, {}, 0, 1}));
    // A later run of that code brings it back, with all its counts.
    Profile again = single(9, {10, 10}, 1);
    again.methods.begin()->second.time = 300;
    merge(sum, again);
    EXPECT_EQ(only(sum).counts, (std::vector<uint64_t>{11, 12}));
    EXPECT_EQ(only(sum).time, 300u);
    EXPECT_EQ(sum.other_code.at({MethodKey{}, 1}), only(newer));
  }
}

TEST(ProfileMerge, one_code_under_two_schemas_is_united_and_loses_nothing) {
  Profile a = single(1, {1, 2}, 10), b = single(1, {10, 20, 30}, 5);
  for (const bool swap : {false, true}) {
    Profile sum = swap ? b : a;
    const MergeReport report = merge(sum, swap ? a : b);
    EXPECT_EQ(only(sum).counts, (std::vector<uint64_t>{11, 22, 30}));
    EXPECT_EQ(only(sum).estimates, only(sum).counts);
    EXPECT_EQ(only(sum).calls, 15u);
    EXPECT_EQ(report, (MergeReport{0, 1, 0, {}, 1, 0}));
  }
}

// The slots that flow=edges and loops=on add, and tables of two sizes.
TEST(ProfileMerge, each_kind_of_slot_of_either_side_is_in_the_sum) {
  MethodProfile a, b;
  for (MethodProfile* m : {&a, &b}) {
    m->schema.cfg_hash = 7;
    m->schema.add(SlotKind::kBlock, 1);
    if (m == &a) m->schema.add(SlotKind::kEdge, 1);
    m->schema.add(SlotKind::kCallTarget, 2, m == &a ? 16 : 32);
    if (m == &b) m->schema.add(SlotKind::kLoop, 1);
    m->counts.assign(m->schema.words(), m == &a ? 3 : 5);
    m->tables[{SlotKind::kCallTarget, 2}][{1, m == &a ? 1u : 2u}] = {7, 7};
    m->weigh(1);
    ASSERT_TRUE(m->check().ok());
  }
  Profile sum, other;
  sum.methods.emplace(a.key, a);
  other.methods.emplace(b.key, b);
  EXPECT_TRUE(merge(sum, other).dropped.empty());
  const MethodProfile& m = only(sum);
  EXPECT_TRUE(m.check().ok());
  EXPECT_EQ(m.count(SlotKind::kBlock, 1), 8u);
  EXPECT_EQ(m.count(SlotKind::kEdge, 1), 3u);
  EXPECT_EQ(m.count(SlotKind::kCallTarget, 2), 3u + 5 + 7 + 7);
  EXPECT_EQ(m.schema.find(SlotKind::kCallTarget, 2)->top, 32u);
  EXPECT_EQ(m.count(SlotKind::kLoop, 1), 5u);
}

TEST(ProfileMerge, slots_beyond_the_cap_are_left_out_and_said) {
  MethodProfile a, b;
  a.schema = Schema::block_schema(Schema::kMaxWords, 1);
  b.schema.cfg_hash = 1;
  b.schema.add(SlotKind::kBlock, 1);
  b.schema.add(SlotKind::kEdge, 1);
  for (MethodProfile* m : {&a, &b}) {
    m->counts.assign(m->schema.words(), 1);
    m->weigh(1);
  }
  Profile sum, other;
  sum.methods.emplace(a.key, a);
  other.methods.emplace(b.key, b);
  EXPECT_EQ(merge(sum, other).dropped.size(), 1u);
  EXPECT_TRUE(only(sum).check().ok());
  EXPECT_EQ(only(sum).count(SlotKind::kBlock, 1), 2u);
}

TEST(ProfileMerge, other_code_of_a_method_that_is_not_there_is_left_out) {
  Profile sum = single(1, {1}), stray = single(2, {1});
  stray.other_code.emplace(std::pair(MethodKey{5, 5}, uint64_t{3}), only(stray));
  EXPECT_EQ(merge(sum, stray).dropped, (std::vector<MethodKey>{{5, 5}}));
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
  // A malformed method in the sum is replaced.
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

// A profile of one method with one slot, at site 1.
Profile with_slot(SlotKind kind, std::vector<uint64_t> counts, Table table = {}) {
  MethodProfile method;
  method.schema.add(kind, 1, 2);
  method.counts = std::move(counts);
  if (!table.empty()) method.tables.emplace(std::pair(kind, SiteId{1}), std::move(table));
  method.weigh(1);
  Profile profile;
  profile.methods.emplace(method.key, std::move(method));
  return profile;
}

uint64_t minus(uint64_t value) { return -value; }

TEST(ProfileMerge, min_and_max_are_those_of_the_side_that_saw_a_value) {
  using Counts = std::vector<uint64_t>;
  const Profile low = with_slot(SlotKind::kRange, {2, minus(9), kMax, minus(7), minus(2)});
  const Profile high = with_slot(SlotKind::kRange, {1, 5, 0, 5, 5});
  const Profile none = with_slot(SlotKind::kRange, {0, 0, 0, 3, 3});
  EXPECT_EQ(only(merged(low, high)).counts, (Counts{3, minus(4), kMax, minus(7), 5}));
  EXPECT_EQ(only(merged(none, high)).counts, (Counts{1, 5, 0, 5, 5}));
  EXPECT_EQ(only(merged(high, none)).counts, (Counts{1, 5, 0, 5, 5}));
  EXPECT_EQ(only(merged(none, none)).counts, (Counts{0, 0, 0, 0, 0}));
}

TEST(ProfileMerge, gauge_keeps_the_greatest) {
  const Profile a = with_slot(SlotKind::kGauge, {7}), b = with_slot(SlotKind::kGauge, {kMax});
  EXPECT_EQ(merged(a, b), b);
  EXPECT_EQ(merged(b, a), b);
  EXPECT_EQ(merged(a, a), a);
}

TEST(ProfileMerge, tables_are_united_without_limit_and_estimates_summed) {
  const SlotKind kind = SlotKind::kCallTarget;
  Profile sum = with_slot(kind, {1}, {{{1, 1}, {4, 0}}, {{1, 2}, {5, 0}}});
  Profile other = with_slot(kind, {2}, {{{1, 2}, {6, 0}}, {{2, 1}, {7, 0}}});
  other.methods.begin()->second.weigh(10);
  merge(sum, other);
  EXPECT_EQ(*only(sum).table(kind, 1),
            (Table{{{1, 1}, {4, 4}}, {{1, 2}, {11, 65}}, {{2, 1}, {7, 70}}}));
  EXPECT_EQ(only(sum).counts, (std::vector<uint64_t>{3}));
  EXPECT_EQ(only(sum).estimates, (std::vector<uint64_t>{21}));
}

TEST(ProfileMerge, kinds_at_one_site_are_never_mixed) {
  // Call target 3 and value 3, and a value whose bits equal a callee's index.
  MethodProfile method;
  method.schema.add(SlotKind::kCallTarget, 3, 4);
  method.schema.add(SlotKind::kValue, 3, 4);
  method.counts = {1, 2, 2, 0, 1, 1, 0};
  method.tables[{SlotKind::kCallTarget, 3}] = {{{0, 1}, {10, 0}}};
  method.tables[{SlotKind::kValue, 3}] = {{{0, 1}, {2, 0}}};
  method.weigh(1);
  Profile sum, one;
  sum.methods.emplace(method.key, method);
  one = sum;
  merge(sum, one);
  EXPECT_EQ(only(sum).table(SlotKind::kCallTarget, 3)->at({0, 1}).count, 20u);
  EXPECT_EQ(only(sum).table(SlotKind::kValue, 3)->at({0, 1}).count, 4u);
  EXPECT_EQ(only(sum).counts, (std::vector<uint64_t>{2, 4, 4, 0, 1, 1, 0}));
}

TEST(ProfileMerge, unknown_mass_is_never_credited_to_the_top_entry) {
  // Seven of eight calls went to callees that are unknown or not the top one: no merge or trim lets
  // the top one exceed an eighth.
  const SlotKind kind = SlotKind::kCallTarget;
  Profile sum = with_slot(kind, {65}, {{{1, 1}, {10, 0}}, {{1, 2}, {5, 0}}});
  for (int round = 0; round < 3; ++round) {
    merge(sum, Profile(sum));
    trim(sum, 1);
    const MethodProfile& method = only(sum);
    const uint64_t top = method.table(kind, 1)->at({1, 1}).count;
    EXPECT_EQ(top * 8, *method.count(kind, 1));
    EXPECT_EQ(method.table(kind, 1)->at({1, 1}).estimate, top);
  }
}

TEST(ProfileMerge, estimate_of_a_word_that_is_no_sum_makes_a_method_malformed) {
  Profile bad = with_slot(SlotKind::kGauge, {1}), sum;
  bad.methods.begin()->second.estimates = {1};
  EXPECT_EQ(merge(sum, bad).dropped.size(), 1u);
  EXPECT_EQ(only(bad).check().error().message,
            "profile of : an estimate of value, which is no sum");
}

TEST(ProfileMerge, impossible_tables_make_a_method_malformed) {
  const auto rule = [](SlotKind kind, SlotKind table_kind, Table table) {
    MethodProfile method = only(with_slot(kind, std::vector<uint64_t>(slot_words(kind))));
    method.name = "f";
    method.tables[{table_kind, 1}] = std::move(table);
    const Status status = method.check();
    return status.ok() ? "" : status.error().message;
  };
  const SlotKind callee = SlotKind::kCallTarget, value = SlotKind::kValue;
  EXPECT_EQ(rule(callee, callee, {{{9, 9}, {1, 1}}}), "");
  EXPECT_EQ(rule(value, value, {{{0, kMax}, {0, 1}}}), "");
  EXPECT_EQ(rule(callee, callee, {}), "profile of f: table of call_target 1: no entries");
  EXPECT_EQ(rule(callee, callee, {{{9, 1ull << 32}, {1, 1}}}),
            "profile of f: table of call_target 1: an impossible key");
  EXPECT_EQ(rule(value, value, {{{9, 9}, {1, 1}}}),
            "profile of f: table of value 1: an impossible key");
  EXPECT_EQ(rule(value, value, {{{0, 9}, {0, 0}}}),
            "profile of f: table of value 1: an entry without count");
  EXPECT_EQ(rule(value, callee, {{{9, 9}, {1, 1}}}),
            "profile of f: table of call_target 1: the site has no slot");
  EXPECT_EQ(rule(SlotKind::kBlock, SlotKind::kBlock, {{{0, 9}, {1, 1}}}),
            "profile of f: table of block 1: the kind has no tables");
}

TEST(ProfileTrim, moves_the_smallest_entries_into_other) {
  const SlotKind kind = SlotKind::kValue;
  Profile profile =
      with_slot(kind, {16, 0, 0, 0, 0, 1},
                {{{0, 1}, {3, 0}}, {{0, 2}, {5, 0}}, {{0, 3}, {3, 0}}, {{0, 4}, {4, 0}}});
  profile.methods.begin()->second.weigh(2);
  EXPECT_EQ(trim(profile, 4), 0u);
  EXPECT_EQ(trim(profile, 3), 1u);
  EXPECT_EQ(*only(profile).table(kind, 1),
            (Table{{{0, 1}, {3, 6}}, {{0, 2}, {5, 10}}, {{0, 4}, {4, 8}}}));
  EXPECT_EQ(only(profile).counts[slot_word::kValueOther], 4u);
  EXPECT_EQ(only(profile).estimates[slot_word::kValueOther], 8u);
  EXPECT_EQ(trim(profile, 0), 3u);
  EXPECT_EQ(only(profile).tables, Tables{});
  EXPECT_EQ(only(profile).counts[slot_word::kValueOther], 16u);
  EXPECT_TRUE(only(profile).check().ok());
}

TEST(ProfileTrim, keeps_totals_of_any_profile) {
  Generator generator(15);
  for (int round = 0; round < 300; ++round) {
    const Profile before = generator.profile();
    Profile after = before;
    trim(after, generator.below(4));
    for (const auto& [key, method] : before.methods) {
      const MethodProfile& trimmed = *after.find(key);
      ASSERT_TRUE(trimmed.check().ok());
      for (const Slot& slot : method.schema.slots) {
        ASSERT_EQ(trimmed.count(slot.kind, slot.site), method.count(slot.kind, slot.site));
      }
    }
  }
}

TEST(ProfileScale, sums_and_tables_are_scaled_and_extremes_stay) {
  Profile profile = with_slot(SlotKind::kValue, {10, minus(9), kMax, minus(7), 3, 5},
                              {{{0, 1}, {1, 0}}, {{0, 2}, {4, 0}}});
  ASSERT_EQ(*scale(profile, 1, 2), 0u);
  EXPECT_EQ(only(profile).counts, (std::vector<uint64_t>{5, minus(4), kMax, minus(7), 3, 2}));
  EXPECT_EQ(*only(profile).table(SlotKind::kValue, 1), (Table{{{0, 2}, {2, 2}}}));
  ASSERT_EQ(*scale(profile, 0, 2), 0u);
  EXPECT_TRUE(only(profile).tables.empty());
  EXPECT_TRUE(only(profile).check().ok());
  Profile gauge = with_slot(SlotKind::kGauge, {9});
  ASSERT_EQ(*scale(gauge, 1, 3), 0u);
  EXPECT_EQ(gauge, with_slot(SlotKind::kGauge, {9}));
}

TEST(ProfileScale, leaves_every_profile_well_formed) {
  Generator generator(16);
  for (int round = 0; round < 300; ++round) {
    Profile profile = generator.profile();
    ASSERT_TRUE(scale(profile, generator.count(), 1 + generator.below(50)).ok());
    for (const auto& [key, method] : profile.methods) ASSERT_TRUE(method.check().ok());
  }
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
}  // namespace uptier::profile_merge_test
