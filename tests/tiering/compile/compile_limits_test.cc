// Bodies that are too large to optimize, and compilations that take too long: the method keeps its
// code, the report gives the reason, and optimization is not requested again.
#include <gtest/gtest.h>

#include "tests/support/runtime_host.h"

namespace uptier::test::compile_limits_test {
namespace {

// A loop over `count` operations that depend on the argument.
std::string long_loop(int count) {
  std::string text = R"(
func @long(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 1
  v2 = const.i64 0
  jump b1(v0, v2)
b1(v3: i64, v4: i64):
  loop_header 0 pc=0 []
)";
  static constexpr const char* kOps[] = {"add", "xor", "mul", "sub", "rotl"};
  int last = 4, before = 3, n = 5;
  for (int i = 0; i < count; ++i, ++n) {
    text += "  v" + std::to_string(n) + " = " + kOps[i % 5] + ".i64 v" + std::to_string(last) +
            ", v" + std::to_string(before) + "\n";
    before = i % 3 == 0 ? 0 : last;
    last = n;
  }
  std::string left = "v" + std::to_string(n), more = "v" + std::to_string(n + 1);
  return text + "  " + left + " = sub.i64 v3, v1\n  " + more + " = ne.i64 " + left +
         ", v2\n  branch " + more + ", b1(" + left + ", v" + std::to_string(last) +
         "), b2\nb2:\n  return v" + std::to_string(last) + "\n}\n";
}

struct Limits : testing::Test {
  // Calls the function often, with a flush after each call.
  void run(const char* option, const char* value, int operations) {
    IrRuntime r(parse_or_die(long_loop(operations)),
                options({{"workers", "0"}, {"policy", "always"}, {option, value}}));
    IrRuntime other(parse_or_die(long_loop(operations)), options({{"tier", "baseline"}}));
    for (uint64_t round = 0; round < 40; ++round) {
      uint64_t arg = 1 + round % 7;
      EXPECT_EQ(r.call("long", {arg}).bits, other.call("long", {arg}).bits);
      r.runtime->flush();
    }
    report = r.report_of("long");
    losses = r.runtime->report().losses;
  }
  bool optimized() const {
    for (const VersionReport& v : report.versions) {
      if (v.tier == Tier::kOptimized) return true;
    }
    return false;
  }

  MethodReport report;
  LossReport losses;
};

TEST_F(Limits, a_body_above_max_body_stays_in_baseline_code) {
  run("max_body", "100", 200);
  EXPECT_FALSE(optimized());
  EXPECT_NE(report.last_error.find("max_body = 100"), std::string::npos) << report.last_error;
  EXPECT_EQ(losses.compiles_failed, 1u) << "asked again";
}

TEST_F(Limits, a_body_below_it_is_optimized) {
  run("max_body", "300", 200);
  EXPECT_TRUE(optimized());
  EXPECT_EQ(report.last_error, "");
}

// On any machine, 20,000 operations take more than a millisecond to compile.
TEST_F(Limits, a_compilation_beyond_max_compile_ms_is_given_up_and_not_tried_again) {
  run("max_compile_ms", "1", 20'000);
  EXPECT_FALSE(optimized());
  EXPECT_NE(report.last_error.find("max_compile_ms = 1"), std::string::npos) << report.last_error;
  EXPECT_EQ(losses.compiles_failed, 1u) << "asked again";
}

// At a first call, baseline code is made instead, and the next flush does not request optimized
// code.
TEST_F(Limits, hold_at_first_calls_too) {
  IrRuntime r(parse_or_die(long_loop(200)),
              options({{"workers", "0"}, {"tier", "optimized"}, {"max_body", "100"}}));
  EXPECT_TRUE(r.call("long", {3}).trap.code == TrapCode::kNone);
  EXPECT_NE(r.report_of("long").last_error.find("max_body = 100"), std::string::npos);
}

}  // namespace
}  // namespace uptier::test::compile_limits_test
