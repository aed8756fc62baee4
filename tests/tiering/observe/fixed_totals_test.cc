// Totals at a fixed interval are scaled to the known number of calls, in the runtime and in a
// trace.
#include "tests/support/pick_program.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::fixed_totals_test {
namespace {

MethodProfile pick_of(const Profile& profile) {
  for (const auto& [key, m] : profile.methods) {
    if (m.name == "pick") return m;
  }
  return {};
}

TEST(FixedTotals, estimates_stand_for_all_calls_also_those_before_there_was_a_copy) {
  Options o;
  o.workers = 0;
  o.policy = PolicyMode::kNever;
  o.adaptive = false;
  o.interval = 16;
  CollectingSink sink;
  constexpr uint64_t kCalls = 3000;
  MethodProfile seen;
  {
    IrRuntime r(parse_or_die(kPick), o, &sink);
    ThreadScope thread(*r.runtime);
    for (uint64_t i = 0; i < kCalls; ++i) ASSERT_TRUE(r.call("pick", {i % 3 == 0}).ok());
    r.runtime->flush();
    seen = pick_of(r.runtime->profile());
  }
  ASSERT_EQ(seen.calls, kCalls);
  // Scaled by the interval alone, it would be a multiple of 16.
  EXPECT_EQ(seen.estimate(SlotKind::kBlock, 1)->total, kCalls);
  const double ways =
      seen.estimate(SlotKind::kBlock, 2)->total + seen.estimate(SlotKind::kBlock, 3)->total;
  EXPECT_NEAR(ways, kCalls, 1);
  ProfileBuilder builder;
  for (const TraceEvent& e : sink.events) ASSERT_TRUE(builder.add(e).ok());
  EXPECT_EQ(pick_of(builder.profile()).estimates, seen.estimates);
}

TEST(FixedTotals, every_call_observed_is_left_as_it_was_counted) {
  Options o;
  o.workers = 0;
  o.policy = PolicyMode::kNever;
  o.adaptive = false;
  o.interval = 1;
  IrRuntime r(parse_or_die(kPick), o);
  ThreadScope thread(*r.runtime);
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_TRUE(r.call("pick", {i % 3 == 0}).ok());
  r.runtime->flush();
  const MethodProfile seen = pick_of(r.runtime->profile());
  EXPECT_EQ(seen.estimates, seen.counts);
}

}  // namespace
}  // namespace uptier::test::fixed_totals_test
