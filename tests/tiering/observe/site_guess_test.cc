// Speculation on values inside bodies: it uses the observations of the host's probes; a wrong guess
// costs an exit, never an answer.
#include <gtest/gtest.h>

#include "tests/support/digits.h"
#include "tests/support/runtime_host.h"
#include "tiering/policy/replay.h"

namespace uptier::test::site_guess_test {
namespace {

// total(p, n): loads d from memory and adds it n times, with an overflow check.
const std::string kText = kLoadDigits + R"(
func @total(ref, i32) -> i64 {
b0(v0: ref, v1: i32):
  v2 = const.i32 0
  v3 = load.i32 v0
  probe range v3
  v4 = const.i64 0
  jump b1(v2, v4)
b1(v5: i32, v6: i64):
  loop_header
  v7 = lt_s.i32 v5, v1
  branch v7, b2, b3
b2:
  v8 = const.i32 16
  v9 = mul_trap.i32 v3, v8
  v10 = extend_s.i64 v9
  v11 = add.i64 v6, v10
  v12 = const.i32 1
  v13 = add.i32 v5, v12
  jump b1(v13, v11)
b3:
  return v6
}
)";

Options guessing(std::initializer_list<std::pair<const char*, const char*>> more = {}) {
  Options o = options({{"policy", "always"},
                       {"workers", "0"},
                       {"interval", "2"},
                       {"adaptive", "off"},
                       {"value_samples", "8"},
                       {"trials", "off"}});
  for (auto [name, value] : more) EXPECT_TRUE(o.set(name, value).ok()) << name;
  return o;
}

struct Guessing : IrRuntime {
  explicit Guessing(const Options& o) : IrRuntime(parse_or_die(kText), o), scope(*runtime) {}

  void run(uint32_t n, uint32_t d) {
    value = d;
    Outcome got = call("load_digits", {reinterpret_cast<uint64_t>(&value), n});
    ASSERT_EQ(got.trap.code, TrapCode::kNone);
    ASSERT_EQ(got.bits, digits(n, d)) << n << " / " << d;
  }
  Outcome total(uint32_t n, int32_t d) {
    value = static_cast<uint32_t>(d);
    return call("total", {reinterpret_cast<uint64_t>(&value), n});
  }
  std::vector<DecisionRecord> decisions(std::string_view action, std::string_view in_reason) const {
    std::vector<DecisionRecord> found;
    for (const DecisionRecord& d : runtime->report().decisions) {
      bool right = d.action == action && d.reason.find(in_reason) != std::string::npos;
      if (right) found.push_back(d);
    }
    return found;
  }

  uint32_t value = 0;
  ThreadScope scope;
};

TEST(SiteGuess, a_value_that_is_always_the_same_becomes_a_constant) {
  Guessing r(guessing());
  for (int i = 0; i < 200; ++i) r.run(20, 10);
  ASSERT_EQ(r.report_of("load_digits").tier, Tier::kOptimized);
  EXPECT_FALSE(r.decisions("specialize", "is 10 in 100.0 %").empty()) << r.runtime->report().text();
  EXPECT_TRUE(r.report_of("load_digits").exits.empty());
}

TEST(SiteGuess, another_value_leaves_and_many_take_the_guess_back) {
  Guessing r(guessing());
  for (int i = 0; i < 200; ++i) r.run(20, 10);
  for (uint32_t d = 1; d < 60; ++d) r.run(50, d);
  MethodReport m = r.report_of("load_digits");
  ASSERT_EQ(m.exits.size(), 1u) << r.runtime->report().text();
  EXPECT_EQ(m.exits[0].reason, GuardReason::kValue);
  EXPECT_EQ(m.exits[0].exits, 58u);
  for (uint32_t d = 0; d < 100; ++d) r.run(30, 7);
  r.runtime->flush();
  auto again = r.decisions("recompile", "exit at site ");
  ASSERT_EQ(again.size(), 1u) << r.runtime->report().text();
  EXPECT_NE(again[0].reason.find("(value)"), std::string::npos) << again[0].reason;
  for (uint32_t d = 0; d < 10; ++d) r.run(30, 7);
  uint64_t exits = r.report_of("load_digits").exits[0].exits;
  for (uint32_t d = 1; d < 50; ++d) r.run(30, d);
  EXPECT_EQ(r.report_of("load_digits").exits[0].exits, exits)
      << "the second version guesses nothing";
}

TEST(SiteGuess, a_trap_of_the_value_is_the_hosts_own) {
  Guessing r(guessing());
  for (int i = 0; i < 200; ++i) r.run(20, 10);
  r.value = 0;
  Outcome got = r.call("load_digits", {reinterpret_cast<uint64_t>(&r.value), 3});
  EXPECT_EQ(got.trap.code, TrapCode::kDivideByZero);
}

TEST(SiteGuess, a_range_that_is_left_leaves_and_overflow_still_traps) {
  Guessing r(guessing());
  for (int i = 0; i < 200; ++i) ASSERT_EQ(r.total(5, 10 + i % 20).bits, 80u * (10 + i % 20));
  ASSERT_EQ(r.report_of("total").tier, Tier::kOptimized);
  EXPECT_FALSE(r.decisions("specialize", "taken to lie from 0 to 63").empty())
      << r.runtime->report().text();
  EXPECT_EQ(r.total(5, 63).bits, 5u * 16 * 63);
  EXPECT_TRUE(r.report_of("total").exits.empty());
  EXPECT_EQ(r.total(5, 64).bits, 5u * 16 * 64);
  EXPECT_EQ(static_cast<int64_t>(r.total(5, -3).bits), -240);
  EXPECT_EQ(r.total(5, INT32_MAX).trap.code, TrapCode::kIntegerOverflow);
  ASSERT_EQ(r.report_of("total").exits.size(), 1u);
  EXPECT_EQ(r.report_of("total").exits[0].exits, 3u);
}

TEST(SiteGuess, without_the_option_nothing_is_guessed) {
  Guessing r(guessing({{"value_versions", "off"}}));
  for (int i = 0; i < 200; ++i) r.run(20, 10);
  ASSERT_EQ(r.report_of("load_digits").tier, Tier::kOptimized);
  for (uint32_t d = 1; d < 60; ++d) r.run(50, d);
  EXPECT_TRUE(r.report_of("load_digits").exits.empty());
}

TEST(SiteGuess, stress_changes_no_answer) {
  for (const char* stress : {"values=all", "guard=all", "values=all,guard=all"}) {
    Guessing r(guessing({{"stress", stress}}));
    for (uint32_t i = 0; i < 300; ++i) r.run(20 + i % 3, i % 5 == 0 ? 3 : 10);
    for (int i = 0; i < 300; ++i) ASSERT_EQ(r.total(5, 10 + i % 20).bits, 80u * (10 + i % 20));
    EXPECT_FALSE(r.report_of("load_digits").versions.empty());
  }
}

TEST(SiteGuess, the_log_replays) {
  Options o = guessing();
  Guessing r(o);
  for (int i = 0; i < 200; ++i) r.run(20, 10);
  for (int i = 0; i < 200; ++i) r.total(5, 10 + i % 20);
  size_t sites = 0;
  for (const DecisionRecord& d : r.runtime->report().decisions) {
    if (!d.inputs.starts_with("site_samples=")) continue;
    Result<DecisionRecord> again = replay(d, PolicyOptions::from(o));
    ASSERT_TRUE(again.ok()) << d.inputs << ": " << again.error().message;
    EXPECT_EQ(again->action, d.action);
    EXPECT_EQ(again->reason, d.reason);
    ++sites;
  }
  EXPECT_GE(sites, 2u);
}

}  // namespace
}  // namespace uptier::test::site_guess_test
