// Draws: which sites are sampled with calls and which with iterations, and how estimates are raked
// to the known numbers of calls and iterations.
#include "jit/analysis/draws.h"

#include <gtest/gtest.h>

#include "profile/algebra/rake.h"
#include "profile/trace/events.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::draws_test {
namespace {

using jit::SiteDraws;
using profile::Draw;
using profile::Observed;

// b0 starts a call; b1 is before the loop, b2 is its header, b3 its body, b4 after it; b5 follows
// b4 and is also reached without the loop.
constexpr const char* kLoop = R"(
func @f(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  branch v1, b5(v0), b1
b1:
  jump b2(v0)
b2(v2: i32):
  loop_header 0 pc=0 []
  branch v2, b3, b4
b3:
  v3 = const.i32 1
  v4 = sub.i32 v2, v3
  jump b2(v4)
b4:
  jump b5(v2)
b5(v5: i32):
  return v5
}
)";

TEST(Draws, are_with_the_call_up_to_a_header_and_with_the_iteration_from_there_on) {
  jit::Module module = parse_or_die(kLoop);
  SiteDraws d = jit::find_draws(module.functions[0]);
  EXPECT_EQ(d.blocks, (std::vector<Draw>{Draw::kCall, Draw::kCall, Draw::kHeader, Draw::kIteration,
                                         Draw::kIteration, Draw::kEither}));
  // b0 to b5 and to b1; b1 to b2; b2 to b3 and to b4; b3 to b2; b4 to b5.
  EXPECT_EQ(d.edges, (std::vector<Draw>{Draw::kCall, Draw::kCall, Draw::kCall, Draw::kIteration,
                                        Draw::kIteration, Draw::kIteration, Draw::kIteration}));
}

Observed three_blocks(uint64_t call, uint64_t header, uint64_t either) {
  return {{1, 1, 1}, {call, header, either}, {}};
}
const std::vector<Draw> kThree = {Draw::kCall, Draw::kHeader, Draw::kEither};

TEST(Rake, brings_calls_and_iterations_to_what_there_was_each_for_itself) {
  Observed seen = three_blocks(400, 9000, 50);
  profile::rake(Schema::block_schema(3, 0), kThree, seen, 800, 6000, 1.5);
  EXPECT_EQ(seen.estimates, (std::vector<uint64_t>{800, 6000, 75}));
}

TEST(Rake, has_nothing_but_the_rest_to_go_by_where_nothing_was_drawn) {
  Observed seen = three_blocks(0, 9000, 50);
  seen.counts[0] = 0;
  profile::rake(Schema::block_schema(3, 0), kThree, seen, 800, 0, 2);
  EXPECT_EQ(seen.estimates, (std::vector<uint64_t>{0, 18000, 100}));
  seen = three_blocks(10, 10, 10);
  profile::rake(Schema::block_schema(3, 0), {}, seen, 800, 700, 3);
  EXPECT_EQ(seen.estimates, (std::vector<uint64_t>{30, 30, 30})) << "draws are not known";
}

TEST(Rake, leaves_no_estimate_below_its_count) {
  Observed seen = three_blocks(400, 9000, 50);
  seen.counts = {300, 20, 50};
  profile::rake(Schema::block_schema(3, 0), kThree, seen, 100, 10, 0.1);
  EXPECT_EQ(seen.estimates, (std::vector<uint64_t>{300, 20, 50}));
}

TEST(Rake, takes_tables_along) {
  Schema schema = Schema::block_schema(1, 0);
  schema.add(SlotKind::kCallTarget, 2, 4);
  Observed seen;
  seen.counts = {1, 0};
  seen.estimates = {10, 0};
  seen.tables[{SlotKind::kCallTarget, 2}][{1, 7}] = {1, 10};
  profile::rake(schema, std::vector<Draw>{Draw::kCall, Draw::kCall}, seen, 30, 0, 1);
  TableEntry entry = seen.tables.at({SlotKind::kCallTarget, 2}).at({1, 7});
  EXPECT_EQ(entry.estimate, 30u);
  EXPECT_EQ(entry.count, 1u);
}

TEST(Draws, travel_with_the_description_of_an_id) {
  Schema schema = Schema::block_schema(70, 5);
  std::vector<Draw> draws(70, Draw::kIteration);
  draws[0] = Draw::kCall;
  draws[33] = Draw::kHeader;
  draws[69] = Draw::kEither;
  InstrumentationDesc desc = profile::make_desc(1, 2, schema, draws);
  EXPECT_EQ(desc.version, profile::kDrawnDescVersion);
  Result<Schema> back = profile::schema_of(desc);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, schema);
  EXPECT_EQ(profile::draws_of(desc, *back), draws);
}

TEST(Draws, are_refused_where_their_words_are_too_many_too_few_or_padded) {
  Schema schema = Schema::block_schema(40, 5);
  const InstrumentationDesc good = profile::make_desc(1, 2, schema, kThree);
  InstrumentationDesc bad = good;
  bad.desc.resize(bad.desc.size() - 8);
  EXPECT_FALSE(profile::schema_of(bad).ok());
  bad = good;
  bad.desc.resize(bad.desc.size() + 8);
  EXPECT_FALSE(profile::schema_of(bad).ok());
  bad = good;
  bad.desc.back() = std::byte{0x40};  // after the last slot
  EXPECT_FALSE(profile::schema_of(bad).ok());
}

// Estimates match the exact totals even while the sampling interval adapts.
TEST(Draws, estimates_of_a_runtime_come_to_its_calls_and_iterations) {
  Options o;
  o.workers = 0;
  o.policy = PolicyMode::kNever;
  IrRuntime r(parse_or_die(kLoop), o);
  ThreadScope scope(*r.runtime);
  for (uint32_t i = 0; i < 20'000; ++i) {
    bool past = i % 7 == 0;
    ASSERT_EQ(r.call("f", {i % 50, past}).bits, past ? i % 50 : 0);
  }
  r.runtime->flush();
  Profile all = r.runtime->profile();
  const MethodProfile& m = all.methods.begin()->second;
  ASSERT_GT(m.sampled_calls, 0u);
  ASSERT_LT(m.sampled_calls, m.calls);
  auto estimate = [&](SiteId block) {
    return static_cast<double>(m.estimates[m.schema.find(SlotKind::kBlock, block)->word]);
  };
  EXPECT_NEAR(estimate(1), static_cast<double>(m.calls), 1);
  EXPECT_NEAR(estimate(3), static_cast<double>(m.iterations), 1);
}

// Optimized code reports its calls but not its iterations; that must not make a loop look rare.
TEST(Draws, of_a_method_that_was_optimized_say_nothing_of_its_iterations) {
  Options o;
  o.workers = 0;
  IrRuntime r(parse_or_die(kLoop), o);
  ThreadScope scope(*r.runtime);
  for (uint32_t i = 0; i < 200'000; ++i) ASSERT_EQ(r.call("f", {40, 0}).bits, 0u);
  r.runtime->flush();
  ASSERT_EQ(r.report_of("f").tier, Tier::kOptimized);
  Profile all = r.runtime->profile();
  const MethodProfile& m = all.methods.begin()->second;
  auto estimate = [&](SiteId block) {
    return static_cast<double>(m.estimates[m.schema.find(SlotKind::kBlock, block)->word]);
  };
  EXPECT_NEAR(estimate(3) / estimate(1), 41, 10);
}

}  // namespace
}  // namespace uptier::test::draws_test
