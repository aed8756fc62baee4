// Inlined executions of a method count as its own in comparisons and exports.
#include "profile/algebra/fold_inlined.h"

#include <gtest/gtest.h>

#include "profile/formats/export.h"
#include "tests/support/trace_samples.h"

namespace uptier::fold_inlined_test {
namespace {

using profile::fold_inlined;
using test::Generator;

constexpr MethodKey kRoot{0xa1, 1}, kCallee{0xa1, 2}, kOther{0xa1, 3};
constexpr uint64_t kRootCode = 0x11, kCalleeCode = 0x22;
const InlinedKey kPlace{kRoot, {{5, kCallee}}};

InlinedBody body(std::map<SiteId, InlinedBlock> blocks, InlinedSites sites = {}) {
  return {{kRootCode, kCalleeCode}, std::move(blocks), std::move(sites)};
}

void add_method(Profile& p, MethodKey key, Schema schema, std::vector<uint64_t> counts) {
  MethodProfile m;
  m.key = key;
  m.schema = std::move(schema);
  m.counts = std::move(counts);
  m.weigh(2);
  p.methods.emplace(key, std::move(m));
}

Schema callee_schema() {
  Schema s = Schema::block_schema(2, kCalleeCode);
  s.add(SlotKind::kCallTarget, 3);
  s.add(SlotKind::kRange, 4);
  return s;
}

// `root` calls `callee`, which has a two-way branch and calls one of two methods.
Profile of_callee(uint64_t first, uint64_t second) {
  Profile p;
  add_method(p, kCallee, callee_schema(), {first, second, 1, 3, 30, 0, 5, 20});
  p.methods.at(kCallee).tables[{SlotKind::kCallTarget, 3}] = {{{0xa1, 7}, {first, 2 * first}}};
  return p;
}

InlinedSites sites_of(uint64_t calls) {
  return {{{SlotKind::kCallTarget, 3}, {{2}, {8}, {{{0xa1, 7}, {calls, 4 * calls}}}, 9}},
          {{SlotKind::kRange, 4}, {{2, 50, 0, 1, 49}, {8, 200, 0, 0, 0}, {}, 9}}};
}

TEST(FoldInlined, words_and_tables_are_summed_as_merge_does) {
  Profile p = of_callee(10, 4);
  p.inlined[kPlace] = body({{2, {3, 12, 9}}}, sites_of(5));
  const auto folded = fold_inlined(p);
  EXPECT_EQ(folded.left_out, 0u);
  ASSERT_EQ(folded.methods.size(), 1u);
  const MethodProfile& m = folded.methods.at(kCallee);
  EXPECT_TRUE(m.check().ok());
  EXPECT_EQ(m.counts, (std::vector<uint64_t>{10, 7, 3, 5, 80, 0, 1, 49}));
  EXPECT_EQ(m.estimates, (std::vector<uint64_t>{20, 20, 10, 14, 260, 0, 0, 0}));
  EXPECT_EQ(*m.table(SlotKind::kCallTarget, 3), (Table{{{0xa1, 7}, {15, 40}}}));
}

TEST(FoldInlined, all_places_of_a_method_add_up) {
  Profile p = of_callee(1, 1);
  p.inlined[kPlace] = body({{1, {3, 12, 9}}});
  p.inlined[{kRoot, {{6, kCallee}}}] = body({{1, {1, 4, 9}}});
  p.inlined[{kOther, {{1, kRoot}, {5, kCallee}}}] = {{9, kRootCode, kCalleeCode}, {{1, {1, 1, 9}}}};
  EXPECT_EQ(fold_inlined(p).methods.at(kCallee).estimates[0], 2u + 12 + 4 + 1);
}

TEST(FoldInlined, bodies_of_other_code_and_of_methods_that_nobody_knows_are_left_out) {
  Profile p = of_callee(1, 1);
  p.inlined[kPlace] = {{kRootCode, kCalleeCode + 1}, {{1, {3, 12, 9}}}};
  p.inlined[{kRoot, {{6, kOther}}}] = body({{1, {1, 4, 9}}});
  auto folded = fold_inlined(p);
  EXPECT_EQ(folded.left_out, 2u);
  EXPECT_TRUE(folded.methods.empty());
  // A body of unknown code is assumed to be of the method's code.
  p.inlined[kPlace].code.back() = 0;
  folded = fold_inlined(p);
  EXPECT_EQ(folded.left_out, 1u);
  EXPECT_EQ(folded.methods.at(kCallee).estimates[0], 14u);
}

TEST(FoldInlined, sites_that_the_method_has_not_and_what_is_malformed_do_no_harm) {
  Profile p = of_callee(1, 1);
  p.inlined[kPlace] = body({{9, {3, 12, 9}}}, {{{SlotKind::kCounter, 4}, {{2}, {8}, {}, 9}}});
  EXPECT_EQ(fold_inlined(p).methods.at(kCallee), p.methods.at(kCallee));
  p.methods.at(kCallee).counts.pop_back();
  EXPECT_EQ(fold_inlined(p).left_out, 1u);
  p.methods.clear();
  p.inlined[kPlace].code.pop_back();
  EXPECT_EQ(fold_inlined(p).left_out, 0u);  // malformed, so it is no body at all
}

// ---- Comparisons ------------------------------------------------------------------------------

// The same program: one run called a method that the other has inlined.
TEST(FoldInlined, runs_that_inlined_differently_are_alike) {
  const Profile called = of_callee(60, 20);
  Profile inlined = of_callee(15, 5);
  inlined.inlined[kPlace] = body({{1, {45, 90, 45}}, {2, {15, 30, 45}}}, sites_of(5));
  inlined.inlined[kPlace].sites.at({SlotKind::kCallTarget, 3}) = {
      {3}, {6}, {{{0xa1, 7}, {45, 90}}}, 45};
  OverlapReport r = compare(called, inlined);
  EXPECT_DOUBLE_EQ(r.program.value, 1);
  EXPECT_DOUBLE_EQ(overlap(inlined, called), 1);
  // Targets: 2 of 122 are unknown in one profile, 8 of 128 in the other.
  for (const KindOverlap& k : r.kinds) {
    if (k.kind == SlotKind::kCallTarget) {
      EXPECT_DOUBLE_EQ(k.overlap.value, 1 - (8.0 / 128 - 2.0 / 122));
    }
  }
  EXPECT_DOUBLE_EQ(r.inlined->value, 0);  // compared by call site, they have nothing in common
  // If one side has the method inlined only, the other side's schema describes it.
  inlined.methods.clear();
  inlined.inlined[kPlace].sites.erase({SlotKind::kRange, 4});
  r = compare(called, inlined);
  EXPECT_DOUBLE_EQ(r.program.value, 1);
  EXPECT_EQ(r.program.only_a, 0);
  ASSERT_EQ(r.methods.size(), 1u);
  EXPECT_DOUBLE_EQ(r.methods[0].share_b, 1);
  EXPECT_DOUBLE_EQ(compare(inlined, called).program.value, 1);
}

TEST(FoldInlined, what_bodies_did_differently_counts) {
  Profile a = of_callee(10, 10), b = a;
  a.inlined[kPlace] = body({{1, {30, 60, 30}}, {2, {0, 0, 30}}});
  b.inlined[kPlace] = body({{1, {0, 0, 30}}, {2, {30, 60, 30}}});
  EXPECT_DOUBLE_EQ(overlap(a, b), 0.4);
  EXPECT_DOUBLE_EQ(overlap(b, a), 0.4);
  EXPECT_DOUBLE_EQ(overlap(a, a), 1);
}

TEST(FoldInlined, methods_that_only_bodies_tell_of_are_compared_by_what_any_of_them_has) {
  Profile a, b;
  a.inlined[kPlace] = body({{1, {1, 30, 9}}, {3, {1, 10, 9}}});
  b.inlined[{kOther, {{1, kCallee}}}] = {{7, kCalleeCode}, {{1, {1, 10, 9}}, {2, {1, 10, 9}}}};
  EXPECT_DOUBLE_EQ(overlap(a, b), 0.5);
  EXPECT_DOUBLE_EQ(overlap(b, a), 0.5);
  EXPECT_DOUBLE_EQ(overlap(a, a), 1);
  // One side does not know its code.
  b.inlined.begin()->second.code.back() = 0;
  EXPECT_DOUBLE_EQ(overlap(a, b), 0.5);
  EXPECT_DOUBLE_EQ(overlap(b, a), 0.5);
  // Different code, and different methods: nothing in common.
  b.inlined.begin()->second.code.back() = kCalleeCode + 1;
  EXPECT_EQ(overlap(a, b), 0);
  EXPECT_EQ(compare(a, b).program.mismatched_a, 1);
  const InlinedBody last = b.inlined.begin()->second;
  b.inlined = {{{kOther, {{1, kRoot}}}, last}};
  EXPECT_EQ(overlap(a, b), 0);
  EXPECT_EQ(compare(a, b).program.only_a, 1);
  EXPECT_EQ(overlap(a, {}), 0);
}

TEST(FoldInlined, a_body_of_other_code_than_the_other_sides_method_is_mismatched) {
  const Profile a = of_callee(10, 10);
  Profile b;
  b.inlined[kPlace] = {{kRootCode, kCalleeCode + 1}, {{1, {1, 10, 9}}}};
  const OverlapReport r = compare(a, b);
  EXPECT_EQ(r.program.value, 0);
  EXPECT_EQ(r.program.mismatched_a, 1);
  EXPECT_EQ(r.program.mismatched_b, 1);
}

TEST(FoldInlined, a_schema_of_the_other_side_that_is_none_is_not_taken) {
  Profile a = of_callee(10, 10), b;
  b.inlined[kPlace] = body({{1, {1, 10, 9}}});
  a.methods.at(kCallee).schema.slots[0].word = 1u << 30;
  EXPECT_EQ(compare(b, a).program.value, 0);
}

TEST(FoldInlined, overlap_of_any_profiles_is_symmetric_between_0_and_1_and_1_on_itself) {
  Generator generator(61);
  size_t folded = 0, bodies_alone = 0;
  for (int round = 0; round < 500; ++round) {
    Profile a = generator.profile(), b = generator.profile();
    // Bodies of the methods in the profile, and of others.
    for (Profile* p : {&a, &b}) {
      InlinedBodies bodies;
      for (auto& [key, of] : p->inlined) {
        InlinedKey at = key;
        const bool known = !p->methods.empty() && generator.chance(2);
        if (known) {
          auto m = p->methods.begin();
          std::advance(m, static_cast<ptrdiff_t>(generator.below(p->methods.size())));
          at.path.back().callee = m->first;
          of.code.back() = m->second.schema.cfg_hash;
        }
        bodies.emplace(std::move(at), std::move(of));
      }
      p->inlined = std::move(bodies);
      folded += fold_inlined(*p).methods.size();
      bodies_alone += fold_inlined(*p).left_out;
    }
    const OverlapReport ab = compare(a, b), ba = compare(b, a), aa = compare(a, a);
    ASSERT_EQ(ab.program, (Overlap{ba.program.value, ba.program.only_b, ba.program.only_a,
                                   ba.program.mismatched_b, ba.program.mismatched_a}));
    ASSERT_NEAR(aa.program.value, 1, 1e-12);
    ASSERT_EQ(ab.kinds.size(), ba.kinds.size());
    for (size_t i = 0; i < ab.kinds.size(); ++i) {
      const double value = ab.kinds[i].overlap.value;
      ASSERT_TRUE(value >= 0 && value <= 1) << value;
      ASSERT_EQ(value, ba.kinds[i].overlap.value);
    }
    for (const KindOverlap& k : aa.kinds) ASSERT_NEAR(k.overlap.value, 1, 1e-12);
  }
  EXPECT_GT(folded, 100u);
  EXPECT_GT(bodies_alone, 100u);
}

}  // namespace
}  // namespace uptier::fold_inlined_test
