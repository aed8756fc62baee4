// Methods specialized on parameter values: the versions are made, give right answers and are
// removed.
#include <gtest/gtest.h>

#include "tests/support/digits.h"
#include "tests/support/runtime_host.h"
#include "tiering/policy/replay.h"

namespace uptier::test::value_versions_test {
namespace {

Options deterministic() {
  Options o;
  o.workers = 0;
  o.measure_rates = false;
  o.value_samples = 16;
  return o;
}

struct Digits : IrRuntime {
  explicit Digits(const Options& o) : IrRuntime(parse_or_die(kDigits), o) {}

  void run(uint32_t n, uint32_t d) {
    Outcome got = call("digits", {n, d});
    ASSERT_EQ(got.trap.code, TrapCode::kNone);
    ASSERT_EQ(got.bits, digits(n, d)) << n << " / " << d;
  }
  std::vector<DecisionRecord> decisions(std::string_view action, std::string_view in_reason) const {
    std::vector<DecisionRecord> found;
    for (const DecisionRecord& d : runtime->report().decisions) {
      bool right = d.action == action && d.reason.find(in_reason) != std::string::npos;
      if (right) found.push_back(d);
    }
    return found;
  }
};

TEST(Specialize, a_stable_parameter_gets_a_version_and_other_values_stay_right) {
  Digits r(deterministic());
  ThreadScope attached(*r.runtime);
  for (uint32_t i = 0; i < 4000; ++i) r.run(40 + i % 50, 10);
  auto made = r.decisions("specialize", "parameter 2 is 10");
  ASSERT_EQ(made.size(), 1u) << r.runtime->report().text();
  EXPECT_TRUE(r.decisions("specialize", "parameter 1").empty());
  for (uint32_t d = 1; d < 20; ++d) r.run(100, d);
  EXPECT_TRUE(r.decisions("roll_back", "").empty());
  EXPECT_EQ(r.call("digits", {3, 0}).trap.code, TrapCode::kDivideByZero);
}

TEST(Specialize, a_value_that_changes_for_good_takes_the_version_back) {
  Digits r(deterministic());
  ThreadScope attached(*r.runtime);
  for (uint32_t i = 0; i < 4000; ++i) r.run(40 + i % 50, 10);
  ASSERT_EQ(r.decisions("specialize", "parameter 2").size(), 1u);
  for (uint32_t i = 0; i < 4000; ++i) r.run(40 + i % 50, 2 + i % 7);
  auto gone = r.decisions("roll_back", "guard of parameter 2 (value)");
  ASSERT_EQ(gone.size(), 1u) << r.runtime->report().text();
  EXPECT_NE(gone[0].reason.find("1024 calls"), std::string::npos) << gone[0].reason;
  for (uint32_t i = 0; i < 4000; ++i) r.run(40 + i % 50, 10);
  EXPECT_EQ(r.decisions("specialize", "parameter 2").size(), 1u) << "it is not tried again";
}

// Only the instrumented copy of optimized code can see that the parameter has become stable.
TEST(Specialize, a_value_that_becomes_stable_later_gets_a_version) {
  for (bool observed : {true, false}) {
    Options o = deterministic();
    o.optimized_interval = 16;
    o.observe_optimized = observed;
    Digits r(o);
    ThreadScope attached(*r.runtime);
    for (uint32_t i = 0; i < 4000; ++i) r.run(4 + i % 5, 2 + i % 7);
    EXPECT_TRUE(r.decisions("specialize", "parameter 2").empty());
    for (uint32_t i = 0; i < 600'000; ++i) r.run(4 + i % 5, 10);
    size_t made = r.decisions("specialize", "parameter 2 is 10").size();
    EXPECT_EQ(made, observed ? 1u : 0u) << r.runtime->report().text();
  }
}

TEST(Specialize, the_log_replays) {
  Options o = deterministic();
  Digits r(o);
  ThreadScope attached(*r.runtime);
  for (uint32_t i = 0; i < 4000; ++i) r.run(40 + i % 50, 10);
  for (uint32_t i = 0; i < 4000; ++i) r.run(40 + i % 50, 2 + i % 7);
  size_t values = 0;
  for (const DecisionRecord& d : r.runtime->report().decisions) {
    if (d.inputs.empty()) continue;
    Result<DecisionRecord> again = replay(d, PolicyOptions::from(o));
    ASSERT_TRUE(again.ok()) << d.inputs << ": " << again.error().message;
    EXPECT_EQ(again->action, d.action);
    EXPECT_EQ(again->reason, d.reason);
    EXPECT_EQ(again->priority, d.priority) << d.reason;
    values += d.inputs.starts_with("value_samples=") || d.inputs.starts_with("window=");
  }
  EXPECT_EQ(values, 2u);
}

}  // namespace
}  // namespace uptier::test::value_versions_test
