// Inlining in a running system: traps, recursion, loops entered by OSR, removal, eviction, options.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/runtime_host.h"

namespace uptier::test::inline_runtime_test {
namespace {

constexpr const char* kText = R"(
func @divide(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  v2 = div_s.i32 v0, v1 @70
  return v2
}
func @check(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  v2 = const.i32 1000
  v3 = gt_s.i32 v0, v2
  trap_if v3, unreachable @80
  v4 = call @divide(v0, v1) @81
  return v4
}
func @work(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  v2 = call @check(v0, v1) @90
  v3 = call @divide(v2, v1) @91
  v4 = add.i32 v2, v3
  v5 = const.i32 7
  v6 = div_s.i32 v5, v4 @92
  return v6
}
func @even(i32) -> i32 {
b0(v0: i32):
  v1 = eqz.i32 v0
  branch v1, b1, b2
b1:
  v2 = const.i32 1
  return v2
b2:
  v3 = const.i32 1
  v4 = sub.i32 v0, v3
  v5 = call @odd(v4)
  return v5
}
func @odd(i32) -> i32 {
b0(v0: i32):
  branch v0, b1, b2
b1:
  v1 = const.i32 1
  v2 = sub.i32 v0, v1
  v3 = call @even(v2)
  return v3
b2:
  v4 = const.i32 0
  return v4
}
func @forever(i32) -> i32 {
b0(v0: i32):
  v1 = call @forever(v0)
  v2 = add.i32 v1, v0
  return v2
}
func @runs_away(i32) -> i32 {
b0(v0: i32):
  branch v0, b1, b2
b1:
  v1 = call @forever(v0)
  return v1
b2:
  return v0
}
func @sum(i32, i32) -> i64 {
b0(v0: i32, v1: i32):
  v2 = const.i64 0
  jump b1(v0, v2)
b1(v3: i32, v4: i64):
  loop_header
  v5 = call @divide(v3, v1) @100
  v6 = extend_s.i64 v5
  v7 = add.i64 v4, v6
  v8 = const.i32 1
  v9 = sub.i32 v3, v8
  branch v9, b1(v9, v7), b2
b2:
  return v7
}
)";

// Makes all decisions and compilations at flushes, on the calling thread.
Options synchronous() {
  Options o;
  o.workers = 0;
  o.interval = 1;
  return o;
}

constexpr int kEnough = 40'000;

// Calls the method until it is optimized.
void warm(IrRuntime& r, std::string_view name, std::vector<uint64_t> args) {
  for (int i = 0; i < kEnough; ++i) ASSERT_TRUE(r.call(name, args).ok()) << name;
}

// Returns the number of bodies inlined into the best version of a method.
uint32_t inlined(const IrRuntime& r, std::string_view name) {
  uint32_t most = 0;
  for (const VersionReport& v : r.report_of(name).versions) {
    bool best = v.tier == Tier::kOptimized && v.copy == Copy::kPlain && !v.retired;
    if (best) most = std::max(most, v.inlined);
  }
  return most;
}

TEST(InlineRuntime, hot_calls_are_inlined_and_answers_stay) {
  IrRuntime r(parse_or_die(kText), synchronous());
  ThreadScope scope(*r.runtime);
  Outcome before = r.call("work", {900, 3});
  warm(r, "work", {900, 3});
  EXPECT_EQ(3u, inlined(r, "work"));
  Outcome after = r.call("work", {900, 3});
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(before.bits, after.bits);
}

TEST(InlineRuntime, nothing_is_inlined_when_the_option_says_so) {
  Options o = synchronous();
  o.inlining = false;
  IrRuntime r(parse_or_die(kText), o);
  ThreadScope scope(*r.runtime);
  warm(r, "work", {900, 3});
  EXPECT_EQ(Tier::kOptimized, r.report_of("work").tier);
  EXPECT_EQ(0u, inlined(r, "work"));
}

// A trap has the same location whether its code runs inlined or not.
TEST(InlineRuntime, a_trap_is_in_the_method_whose_code_it_is) {
  IrRuntime r(parse_or_die(kText), synchronous());
  ThreadScope scope(*r.runtime);
  warm(r, "work", {900, 3});
  ASSERT_EQ(3u, inlined(r, "work"));
  struct Case {
    uint64_t a, b;
    TrapCode code;
    const char* method;
    uint32_t location;
  };
  const Case cases[] = {
      {900, 0, TrapCode::kDivideByZero, "divide", 70},
      {1001, 3, TrapCode::kUnreachable, "check", 80},
      {0, 3, TrapCode::kDivideByZero, "work", 92},
      {0x80000000, 0xffffffff, TrapCode::kIntegerOverflow, "divide", 70},
  };
  for (const Case& c : cases) {
    Outcome o = r.call("work", {c.a, c.b});
    EXPECT_EQ(c.code, o.trap.code) << c.a;
    EXPECT_EQ(r.method(c.method), o.trap.method) << c.a;
    EXPECT_EQ(c.location, o.trap.location) << c.a;
  }
}

TEST(InlineRuntime, mutual_recursion_ends_where_it_should) {
  IrRuntime r(parse_or_die(kText), synchronous());
  ThreadScope scope(*r.runtime);
  for (uint64_t i = 0; i < 20'000; ++i) {
    ASSERT_EQ(i % 30 % 2 == 0 ? 1u : 0u, r.call("even", {i % 30}).bits);
    ASSERT_EQ(i % 30 % 2 == 1 ? 1u : 0u, r.call("odd", {i % 30}).bits);
  }
  // A method is nested in itself at most twice: odd in even in odd in even in odd, in even.
  EXPECT_EQ(5u, inlined(r, "even"));
  EXPECT_EQ(5u, inlined(r, "odd"));
  EXPECT_EQ(1u, r.call("even", {20'000}).bits);
}

TEST(InlineRuntime, recursion_without_end_runs_out_of_stack) {
  IrRuntime r(parse_or_die(kText), synchronous());
  ThreadScope scope(*r.runtime);
  warm(r, "runs_away", {0});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(TrapCode::kStackExhausted, r.call("runs_away", {1}).trap.code);
  }
}

uint64_t expected_sum(uint32_t n, uint32_t by) {
  uint64_t sum = 0;
  for (uint32_t i = 1; i <= n; ++i) sum += i / by;
  return sum;
}

TEST(InlineRuntime, code_entered_in_a_loop_has_its_callees_inlined) {
  IrRuntime r(parse_or_die(kText), synchronous());
  ThreadScope scope(*r.runtime);
  // A callee is described after its first call.
  ASSERT_TRUE(r.call("sum", {5, 3}).ok());
  Outcome o = r.call("sum", {3'000'000, 3});
  ASSERT_TRUE(o.ok());
  EXPECT_EQ(expected_sum(3'000'000, 3), o.bits);
  bool found = false;
  for (const VersionReport& v : r.report_of("sum").versions) {
    found |= v.osr_loop.valid() && v.inlined == 1;
  }
  EXPECT_TRUE(found);
  EXPECT_GT(r.report_of("sum").osr_entries, 0u);
  Outcome trap = r.call("sum", {3'000'000, 0});
  EXPECT_EQ(TrapCode::kDivideByZero, trap.trap.code);
  EXPECT_EQ(r.method("divide"), trap.trap.method);
  EXPECT_EQ(70u, trap.trap.location);
}

// ---- Indirect calls ---------------------------------------------------------------------------

constexpr const char* kIndirect = R"(
func @twice(i32) -> i32 {
b0(v0: i32):
  v1 = add.i32 v0, v0
  return v1
}
func @inverse(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 100
  v2 = div_s.i32 v1, v0 @40
  return v2
}
func @wide(i64) -> i32 {
b0(v0: i64):
  v1 = wrap.i32 v0
  return v1
}
func @apply(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = call_indirect.(i32)->i32 v0(v1)
  v3 = const.i32 1
  v4 = add.i32 v2, v3
  return v4
}
)";

TEST(InlineRuntime, an_indirect_call_is_guessed_and_goes_where_it_says) {
  IrRuntime r(parse_or_die(kIndirect), synchronous());
  ThreadScope scope(*r.runtime);
  auto address = [&](const char* name) {
    return reinterpret_cast<uint64_t>(r.runtime->entry_address(r.method(name)));
  };
  ASSERT_TRUE(r.call("twice", {1}).ok());
  for (uint32_t i = 0; i < 40'000; ++i) {
    const char* name = i % 80 == 0 ? "inverse" : "twice";
    uint32_t x = 1 + i % 50;
    uint32_t want = (i % 80 == 0 ? 100 / x : 2 * x) + 1;
    ASSERT_EQ(want, r.call("apply", {address(name), x}).bits) << i;
  }
  EXPECT_EQ(1u, inlined(r, "apply"));
  EXPECT_EQ(41u, r.call("apply", {address("twice"), 20}).bits);
  EXPECT_EQ(6u, r.call("apply", {address("inverse"), 20}).bits);
  Outcome trap = r.call("apply", {address("inverse"), 0});
  EXPECT_EQ(TrapCode::kDivideByZero, trap.trap.code);
  EXPECT_EQ(r.method("inverse"), trap.trap.method);
  EXPECT_EQ(40u, trap.trap.location);
}

// A speculated target may be removed before the code is compiled, or later.
TEST(InlineRuntime, a_removed_target_is_not_guessed) {
  IrRuntime r(parse_or_die(kIndirect), synchronous());
  ThreadScope scope(*r.runtime);
  auto address = [&](const char* name) {
    return reinterpret_cast<uint64_t>(r.runtime->entry_address(r.method(name)));
  };
  for (uint32_t i = 0; i < 100; ++i) { ASSERT_TRUE(r.call("apply", {address("inverse"), 5}).ok()); }
  MethodId gone[] = {r.method("inverse")};
  r.runtime->remove_methods(gone);
  for (uint32_t i = 0; i < 40'000; ++i) {
    ASSERT_EQ(2 * i + 1, r.call("apply", {address("twice"), i}).bits);
  }
  EXPECT_LE(inlined(r, "apply"), 1u);
}

// ---- Removed methods --------------------------------------------------------------------------

// A removed method stays in the code that has inlined it: the host promises that nobody calls it
// any more, but the code that would call it is still valid. It is not inlined again.
TEST(InlineRuntime, what_was_inlined_outlives_its_method) {
  IrRuntime r(parse_or_die(kText), synchronous());
  ThreadScope scope(*r.runtime);
  warm(r, "work", {900, 3});
  ASSERT_EQ(3u, inlined(r, "work"));
  uint64_t want = r.call("work", {900, 3}).bits;
  MethodId gone[] = {r.method("divide"), r.method("check")};
  r.runtime->remove_methods(gone);
  EXPECT_EQ(want, r.call("work", {900, 3}).bits);
  Outcome trap = r.call("work", {900, 0});
  EXPECT_EQ(TrapCode::kDivideByZero, trap.trap.code);
  EXPECT_EQ(gone[0], trap.trap.method);
}

TEST(InlineRuntime, a_removed_method_is_not_inlined) {
  IrRuntime r(parse_or_die(kText), synchronous());
  ThreadScope scope(*r.runtime);
  ASSERT_TRUE(r.call("even", {3}).ok());
  MethodId gone[] = {r.method("odd")};
  r.runtime->remove_methods(gone);
  warm(r, "even", {0});
  EXPECT_EQ(0u, inlined(r, "even"));
}

TEST(InlineRuntime, with_exact_gaps_every_call_is_counted) {
  Options o = synchronous();
  o.gap = GapMode::kExact;
  IrRuntime r(parse_or_die(kText), o);
  ThreadScope scope(*r.runtime);
  warm(r, "work", {900, 3});
  EXPECT_EQ(0u, inlined(r, "work"));
  r.runtime->flush();
  EXPECT_EQ(uint64_t{kEnough}, r.report_of("check").calls);
  EXPECT_EQ(uint64_t{kEnough} * 2, r.report_of("divide").calls);
}

// With little room for code, methods are evicted and compiled again, with the same bodies inlined.
TEST(InlineRuntime, evicted_callers_are_made_again) {
  std::string text = kText;
  for (int i = 0; i < 60; ++i) {
    std::string n = std::to_string(i);
    text += "func @f" + n + "(i32) -> i32 {\nb0(v0: i32):\n  v1 = const.i32 " + n +
            "\n  v2 = add.i32 v0, v1\n  return v2\n}\n";
  }
  Options o = synchronous();
  o.code_budget = 96u << 10;
  o.pack_code = false;  // so each body takes a page
  IrRuntime r(parse_or_die(text), o);
  ThreadScope scope(*r.runtime);
  uint64_t want = r.call("work", {900, 3}).bits;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kEnough / 2; ++i) ASSERT_EQ(want, r.call("work", {900, 3}).bits);
    for (int i = 0; i < 60; ++i) {
      Outcome other = r.call("f" + std::to_string(i), {1});
      ASSERT_TRUE(other.ok());
      ASSERT_EQ(uint64_t(i) + 1, other.bits);
    }
  }
  EXPECT_GT(r.runtime->report().losses.evictions, 0u);
  EXPECT_EQ(TrapCode::kDivideByZero, r.call("work", {900, 0}).trap.code);
}

}  // namespace
}  // namespace uptier::test::inline_runtime_test
