#include "tiering/policy/compile_rate.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/runtime_host.h"
#include "tiering/policy/baseline_rate.h"
#include "tiering/policy/replay.h"

namespace uptier::tiering::compile_rate_test {
namespace {

TEST(CompileRate, begins_at_what_is_assumed_and_comes_to_what_is_measured) {
  CompileRate r(2500, true);
  EXPECT_EQ(r.ns(), 2500);
  r.add(2048, 0, 2048 * 500);  // as much as is remembered, so it gets half of the weight
  EXPECT_DOUBLE_EQ(r.ns(), 1500);
  for (int i = 0; i < 20; ++i) r.add(2048, 0, 2048 * 500);
  EXPECT_NEAR(r.ns(), 500, 0.01);
  EXPECT_EQ(r.compilations(), 21u);
  for (int i = 0; i < 20; ++i) r.add(2048, 0, 2048 * 4000);
  EXPECT_NEAR(r.ns(), 4000, 0.01) << "and follows";
}

TEST(CompileRate, weighs_compilations_by_their_size) {
  CompileRate r(1000, true);
  r.add(10, 0, 10 * 100'000);  // the fixed cost of a compilation
  EXPECT_LT(r.ns(), 1500);
  r.add(100'000, 0, 100'000 * 300);
  EXPECT_NEAR(r.ns(), 300, 30);
  r.add(0, 0, 1'000'000);
  EXPECT_NEAR(r.ns(), 300, 30) << "of nothing follows nothing";
}

TEST(CompileRate, of_a_large_method_does_not_go_by_what_small_ones_inline) {
  CompileRate r(1000, true);
  // 20 instructions with 380 inlined ones, at 500 ns each.
  for (int i = 0; i < 100; ++i) r.add(20, 380, 400 * 500);
  EXPECT_NEAR(r.ns(), 500, 5);
  EXPECT_NEAR(r.ns_of(20) * 20, 400 * 500, 5000) << "another of these";
  EXPECT_NEAR(r.ns_of(40'000) * 40'000, (40'000 + 3'800) * 500, 300'000) << "room for 4,000 more";
  for (int i = 0; i < 100; ++i) r.add(1'000, 0, 1'000 * 500);
  EXPECT_NEAR(r.ns_of(20), 500, 10) << "nothing is inlined any more";
  EXPECT_EQ(CompileRate(1000, true).ns_of(0), 1000) << "of nothing";
}

TEST(CompileRate, stays_where_it_is_when_it_is_not_to_be_measured) {
  CompileRate r(2500, false);
  r.add(1'000'000, 0, 1);
  EXPECT_EQ(r.ns(), 2500);
  EXPECT_EQ(r.compilations(), 0u);
}

TEST(CompileRate, begins_at_what_was_measured_at_the_start_if_nothing_has_been_compiled_yet) {
  CompileRate r(2500, true);
  r.begin(0);
  EXPECT_EQ(r.ns(), 2500) << "it could not be measured";
  r.begin(700);
  EXPECT_EQ(r.ns(), 700);
  r.add(2048, 0, 2048 * 500);
  EXPECT_DOUBLE_EQ(r.ns(), 600);
  r.begin(9000);
  EXPECT_DOUBLE_EQ(r.ns(), 600);
  CompileRate held(2500, false);
  held.begin(700);
  EXPECT_EQ(held.ns(), 2500);
}

TEST(BaselineRate, begins_at_what_was_measured_at_the_start_and_comes_to_what_methods_take) {
  BaselineRate r(1, true);
  EXPECT_FALSE(r.measured());
  r.begin(0.5);
  EXPECT_TRUE(r.measured());
  EXPECT_EQ(r.ns(), 0.5);
  r.add(100, 1600);  // 16 ns with a fifth of the weight: 0.5 * 32^(1/5)
  EXPECT_NEAR(r.ns(), 1, 1e-9);
  r.begin(0.5);
  EXPECT_NEAR(r.ns(), 1, 1e-9) << "too late";
  for (int i = 0; i < 300; ++i) r.add(1000, 3000);
  EXPECT_NEAR(r.ns(), 3, 0.05);
  r.add(0, 100);
  r.add(100, 0);
  EXPECT_NEAR(r.ns(), 3, 0.05) << "of nothing follows nothing";
}

TEST(BaselineRate, stays_where_it_is_when_it_is_not_to_be_measured) {
  for (BaselineRate r : {BaselineRate(1, false), BaselineRate(0, true)}) {
    double was = r.ns();
    r.begin(0.5);
    r.add(100, 1600);
    EXPECT_EQ(r.ns(), was);
    EXPECT_FALSE(r.measured());
  }
}

// Returns the inputs of a run's first decision; with a worker, that may take a while.
SystemSnapshot first_decision(Options o) {
  o.seed = 3;
  test::IrRuntime r(test::parse_or_die(test::kSumText), o);
  ThreadScope thread(*r.runtime);
  for (auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
       std::chrono::steady_clock::now() < end;) {
    for (int i = 0; i < 200; ++i) EXPECT_EQ(r.call("sum", {10}).bits, 55u);
    for (const DecisionRecord& d : r.runtime->report().decisions) {
      MethodSnapshot m;
      SystemSnapshot s;
      if (read_inputs(d.inputs, m, s).ok()) return s;
    }
  }
  ADD_FAILURE() << "nothing was decided";
  return {};
}

TEST(Calibration, comes_before_the_first_decision) {
  SystemSnapshot s = first_decision({});
  EXPECT_GT(s.compile_ns, 0);
  EXPECT_NE(s.compile_ns, Options().compile_ns);
  EXPECT_GT(s.baseline_ns, 0);
}

TEST(Calibration, leaves_what_was_set) {
  Options o;
  o.compile_ns = 2600;
  o.baseline_ns = 1.5;
  SystemSnapshot s = first_decision(o);
  EXPECT_EQ(s.compile_ns, 2600);
  EXPECT_EQ(s.baseline_ns, 0) << "the policy has it";
}

TEST(Calibration, is_not_for_runs_without_a_clock) {
  Options o;
  o.measure_rates = false;
  SystemSnapshot s = first_decision(o);
  EXPECT_EQ(s.compile_ns, 0);
  EXPECT_EQ(s.baseline_ns, 0);
}

TEST(Calibration, is_not_for_runs_that_are_to_repeat_themselves) {
  Options o;
  o.workers = 0;
  SystemSnapshot s = first_decision(o);
  EXPECT_EQ(s.compile_ns, Options().compile_ns);
  EXPECT_EQ(s.baseline_ns, 0);
}

}  // namespace
}  // namespace uptier::tiering::compile_rate_test
