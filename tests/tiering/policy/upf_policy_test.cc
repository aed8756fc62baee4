// The effect of a saved profile on decisions: like all inputs, a pure function of the snapshot.
#include <gtest/gtest.h>

#include "tiering/policy/policy.h"

namespace uptier::tiering::upf_policy_test {
namespace {

// A method of 100 instructions that has not run yet: optimizing it costs 250 us, which pays from
// 375 us on.
MethodSnapshot new_method(uint64_t saved_work, uint64_t saved_samples) {
  MethodSnapshot m;
  m.instructions = 100;
  m.saved_work = saved_work;
  m.saved_samples = saved_samples;
  return m;
}

TEST(UpfPolicy, saved_work_counts_as_work_to_come) {
  const PolicyOptions o;
  EXPECT_EQ(decide(new_method(374'000, 9), {}, o).action, Action::kKeep);
  const Decision d = decide(new_method(376'000, 9), {}, o);
  EXPECT_EQ(d.action, Action::kSpecialize);
  EXPECT_FALSE(d.osr_loop.valid());
  EXPECT_EQ(d.reason, "376 us in the saved profile, compile 250 us, 9 samples");
  EXPECT_EQ(decide(new_method(0, 0), {}, o).action, Action::kKeep);
}

TEST(UpfPolicy, saved_profile_needs_samples_too) {
  const PolicyOptions o{.min_samples = 5};
  EXPECT_EQ(decide(new_method(1'000'000, 4), {}, o).reason, "0 samples, 5 needed");
  MethodSnapshot m = new_method(1'000'000, 4);
  m.samples = 1;
  EXPECT_EQ(decide(m, {}, o).action, Action::kSpecialize);
  m.saved_samples = UINT64_MAX;
  EXPECT_EQ(decide(m, {}, o).action, Action::kSpecialize);
}

TEST(UpfPolicy, what_was_executed_counts_when_it_is_more) {
  MethodSnapshot m = new_method(376'000, 9);
  m.calls = 100'000;
  m.samples = 3;
  m.sampled_work = 10'000'000;
  EXPECT_EQ(decide(m, {}, {}).reason, "10 ms so far, compile 250 us, 3 samples");
}

TEST(UpfPolicy, loop_is_judged_by_what_ran_here) {
  MethodSnapshot m = new_method(1'000'000'000, 99);
  m.optimized_requested = true;
  m.at_loop = LoopId(0);
  m.calls = 1;
  m.samples = 3;
  EXPECT_EQ(decide(m, {}, {}).action, Action::kKeep);
}

TEST(UpfPolicy, obstacles_stay_obstacles) {
  PolicyOptions never;
  never.mode = PolicyMode::kNever;
  EXPECT_EQ(decide(new_method(1'000'000, 9), {}, never).action, Action::kKeep);
  MethodSnapshot failed = new_method(1'000'000, 9);
  failed.failed = true;
  EXPECT_EQ(decide(failed, {}, {}).action, Action::kKeep);
}

}  // namespace
}  // namespace uptier::tiering::upf_policy_test
