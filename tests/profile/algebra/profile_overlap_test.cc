#include <gtest/gtest.h>

#include "tests/support/trace_samples.h"
#include "uptier/profile.h"

namespace uptier::profile_overlap_test {
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
  // Shares of a: 1/8, 3/8, 4/8; shares of b: 1/2, 1/2, 0.
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

// Sites that one side was not asked to observe are left out: flow=edges against flow=blocks,
// loops=on against off, tables of two sizes.
TEST(ProfileOverlap, profiles_of_other_options_are_compared_on_common_ground) {
  MethodProfile a, b;
  for (MethodProfile* m : {&a, &b}) {
    m->schema.cfg_hash = 5;
    m->schema.add(SlotKind::kBlock, 1);
    m->schema.add(SlotKind::kBlock, 2);
    if (m == &a) m->schema.add(SlotKind::kEdge, 1);
    m->schema.add(SlotKind::kCallTarget, 3, m == &a ? 16 : 32);
    if (m == &b) m->schema.add(SlotKind::kLoop, 1);
    m->counts.assign(m->schema.words(), 6);
    m->weigh(1);
  }
  Profile one, other;
  one.methods.emplace(a.key, a);
  other.methods.emplace(b.key, b);
  const OverlapReport report = compare(one, other);
  EXPECT_EQ(report.program, (Overlap{1, 0, 0, 0, 0}));
  EXPECT_FALSE(report.methods[0].mismatched);
  EXPECT_DOUBLE_EQ(report.methods[0].value, 1);
  for (const KindOverlap& k : report.kinds) {
    EXPECT_EQ(k.in_a, k.kind != SlotKind::kLoop) << "only b was asked for loops";
    EXPECT_EQ(k.in_b, k.kind != SlotKind::kEdge);
    EXPECT_EQ(k.comparable(), k.kind == SlotKind::kBlock || k.kind == SlotKind::kCallTarget);
    EXPECT_LE(k.overlap.value, 1);
    EXPECT_LE(k.overlap.mismatched_a + k.overlap.only_a, 1);
    EXPECT_LE(k.overlap.mismatched_b + k.overlap.only_b, 1);
  }
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

// Profiles of one method with one slot.
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

double kind_value(const Profile& a, const Profile& b, SlotKind kind) {
  for (const KindOverlap& k : compare(a, b).kinds) {
    if (k.kind == kind) return k.overlap.value;
  }
  return -1;
}

TEST(ProfileOverlap, every_kind_lies_between_0_and_1_is_symmetric_and_1_on_itself) {
  Generator generator(23);
  for (int round = 0; round < 500; ++round) {
    const Profile a = generator.profile(), b = generator.profile();
    const OverlapReport ab = compare(a, b), ba = compare(b, a), aa = compare(a, a);
    ASSERT_EQ(ab.kinds.size(), ba.kinds.size());
    for (size_t i = 0; i < ab.kinds.size(); ++i) {
      ASSERT_GE(ab.kinds[i].overlap.value, 0);
      ASSERT_LE(ab.kinds[i].overlap.value, 1);
      ASSERT_EQ(ab.kinds[i].overlap.value, ba.kinds[i].overlap.value);
    }
    for (const KindOverlap& kind : aa.kinds) ASSERT_NEAR(kind.overlap.value, 1, 1e-12);
  }
}

TEST(ProfileOverlap, tables_are_compared_by_entry_and_other_is_an_entry_of_its_site) {
  const SlotKind kind = SlotKind::kCallTarget;
  const Profile a = with_slot(kind, {5}, {{{1, 1}, {3, 0}}, {{1, 2}, {2, 0}}});
  const Profile b = with_slot(kind, {1}, {{{1, 1}, {5, 0}}, {{1, 3}, {4, 0}}});
  EXPECT_DOUBLE_EQ(kind_value(a, b, kind), 0.3 + 0.1);
  // A site whose entries are all unknown has no overlap with a site whose top entry is known.
  const Profile unknown = with_slot(kind, {10});
  const Profile known = with_slot(kind, {0}, {{{1, 1}, {10, 0}}});
  EXPECT_DOUBLE_EQ(kind_value(unknown, known, kind), 0);
  EXPECT_DOUBLE_EQ(kind_value(unknown, unknown, kind), 1);
}

TEST(ProfileOverlap, loops_are_compared_by_extrapolated_cycles) {
  // One side times one execution in ten, the other all: both give 1000 cycles each.
  const Profile sampled = with_slot(SlotKind::kLoop, {10, 0, 1, 0, 100, 100, 10000, 0});
  const Profile full = with_slot(SlotKind::kLoop, {10, 0, 10, 0, 1000, 1000, 100000, 0});
  EXPECT_DOUBLE_EQ(kind_value(sampled, full, SlotKind::kLoop), 1);
  const Profile never_timed = with_slot(SlotKind::kLoop, {10, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_DOUBLE_EQ(kind_value(never_timed, full, SlotKind::kLoop), 0);
}

TEST(ProfileOverlap, logs_ranges_and_gauges_take_no_part) {
  for (const SlotKind kind : {SlotKind::kLog, SlotKind::kRange, SlotKind::kGauge}) {
    const Profile a = with_slot(kind, std::vector<uint64_t>(slot_words(kind), 1));
    EXPECT_TRUE(compare(a, a).kinds.empty());
    EXPECT_EQ(overlap(a, a), 1);
  }
}

TEST(ProfileOverlap, estimates_are_compared_not_counts) {
  // A sampling rate that decayed: the second block ran only late, at interval 10.
  Profile sampled, full;
  add(sampled, 0, 1, {100, 10});
  sampled.methods.begin()->second.estimates = {100, 100};
  add(full, 0, 1, {100, 100});
  EXPECT_DOUBLE_EQ(overlap(sampled, full), 1);
}

TEST(ProfileOverlap, program_is_compared_in_blocks_or_else_in_edges) {
  const auto both = [](uint64_t block, uint64_t edge_1, uint64_t edge_2) {
    Profile profile;
    add(profile, 0, 1, {block});
    MethodProfile& method = profile.methods.begin()->second;
    method.schema.add(SlotKind::kEdge, 1);
    method.schema.add(SlotKind::kEdge, 2);
    method.schema.add(SlotKind::kCounter, 1);
    method.counts = {block, edge_1, edge_2, edge_1};
    method.weigh(1);
    return profile;
  };
  const OverlapReport blocks = compare(both(1, 1, 0), both(1, 0, 1));
  EXPECT_EQ(blocks.kind, SlotKind::kBlock);
  EXPECT_EQ(blocks.program.value, 1);
  EXPECT_EQ(blocks.methods[0].value, 1);
  const OverlapReport edges = compare(both(0, 1, 3), both(1, 2, 2));
  EXPECT_EQ(edges.kind, SlotKind::kEdge);
  EXPECT_EQ(edges.program.value, 0.75);
  EXPECT_EQ(edges.methods[0].value, 0.75);
  EXPECT_EQ(compare(both(0, 0, 0), both(1, 0, 0)).kind, SlotKind::kBlock);
  EXPECT_EQ(overlap(both(0, 0, 0), both(1, 0, 0)), 0);
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
  // Only existing estimates count: all of a is in the first block, which has a sixth of b.
  EXPECT_DOUBLE_EQ(overlap(a, b), 1.0 / 6);
  EXPECT_DOUBLE_EQ(overlap(b, a), 1.0 / 6);
  a.methods.begin()->second.estimates.clear();
  EXPECT_EQ(overlap(a, b), 0);
}

}  // namespace
}  // namespace uptier::profile_overlap_test
