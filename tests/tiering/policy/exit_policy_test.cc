// Many exits of one site: limits, back-off, bans; and how sites are counted.
#include <gtest/gtest.h>

#include "jit/frontend/parse.h"
#include "tests/support/runtime_host.h"
#include "tiering/model/side_exits.h"
#include "tiering/policy/policy.h"

namespace uptier::tiering::exit_policy_test {
namespace {

PolicyOptions policy() { return PolicyOptions::from(Options{}); }

TEST(ExitPolicy, limits_double_with_each_retry_and_are_lower_in_loops) {
  EXPECT_EQ(exit_limit({}, policy()), 100u);
  EXPECT_EQ(exit_limit({.retries = 1}, policy()), 200u);
  EXPECT_EQ(exit_limit({.retries = 3}, policy()), 800u);
  EXPECT_EQ(exit_limit({.in_loop = true}, policy()), 5u);
  EXPECT_EQ(exit_limit({.retries = 2, .in_loop = true}, policy()), 20u);
  EXPECT_GT(exit_limit({.retries = 1000}, policy()), 1u << 30) << "no shift out of range";
}

struct Row {
  ExitSnapshot e;
  Action action;
  bool met;
};

TEST(ExitPolicy, says_what_its_formula_says) {
  const Row rows[] = {
      {{.exits = 0}, Action::kKeep, false},
      {{.exits = 99}, Action::kKeep, false},
      {{.exits = 100}, Action::kRecompile, true},
      {{.exits = 4, .in_loop = true}, Action::kKeep, false},
      {{.exits = 5, .in_loop = true}, Action::kRecompile, true},
      {{.exits = 100, .retries = 1}, Action::kKeep, false},
      {{.exits = 200, .retries = 1}, Action::kRecompile, true},
      {{.exits = 400, .retries = 2}, Action::kRecompile, true},
      {{.exits = 799, .retries = 3}, Action::kKeep, false},
      {{.exits = 800, .retries = 3}, Action::kBan, true},
      {{.exits = 100, .declared = true}, Action::kKeep, true},
      {{.exits = 800, .retries = 3, .declared = true}, Action::kBan, true},
  };
  for (const Row& r : rows) {
    ExitDecision d = decide_exit(r.e, policy());
    EXPECT_EQ(d.action, r.action) << d.reason;
    EXPECT_EQ(d.met, r.met) << d.reason;
    EXPECT_FALSE(d.reason.empty());
  }
}

TEST(ExitPolicy, a_method_with_a_banned_guard_is_kept_where_it_is) {
  MethodSnapshot m;
  m.calls = m.samples = 1'000'000'000;
  m.instructions = 10;
  m.sampled_work = 1e12;
  EXPECT_NE(decide(m, {}, policy()).action, Action::kKeep);
  m.guard_banned = true;
  EXPECT_EQ(decide(m, {}, policy()).action, Action::kKeep);
}

// Two guards, and a loop with a block in it.
jit::Function body() {
  return test::parse_or_die(R"(
func @f(i32) -> i32 {
b0(v0: i32):
  frame_state pc=1 [v0]
  guard v0, type @11
  jump b1(v0)
b1(v1: i32):
  loop_header 0
  branch v1, b2, b3
b2:
  frame_state pc=2 [v1]
  guard v1, bounds @22
  v2 = const.i32 1
  v3 = sub.i32 v1, v2
  jump b1(v3)
b3:
  return v1
}
)")
      .functions[0];
}

TEST(MethodExits, number_guards_then_blocks_in_build_order) {
  MethodExits exits(body(), jit::find_loop_forest(body()), policy());
  const jit::PositionTable none;
  EXPECT_EQ(exits.name(0, none), "guard 1 (type, @11)");
  EXPECT_EQ(exits.name(1, none), "guard 2 (bounds, @22)");
  EXPECT_EQ(exits.name(2 + 3, none), "block 4 (unreached)");
  EXPECT_FALSE(exits.snapshot(0).in_loop);
  EXPECT_TRUE(exits.snapshot(1).in_loop);
  EXPECT_TRUE(exits.snapshot(1).declared);
  EXPECT_TRUE(exits.snapshot(2 + 2).in_loop);
  EXPECT_FALSE(exits.snapshot(2 + 2).declared);
  EXPECT_TRUE(exits.report().empty());
}

TEST(MethodExits, tell_once_when_the_limit_is_met) {
  MethodExits exits(body(), jit::find_loop_forest(body()), policy());
  constexpr uint32_t kBlock = 2 + 2;  // the block in the loop
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(exits.count(kBlock));
  EXPECT_TRUE(exits.count(kBlock));
  EXPECT_FALSE(exits.count(kBlock)) << "the worker knows";
  exits.ask_again(kBlock);
  EXPECT_TRUE(exits.count(kBlock));
  EXPECT_EQ(exits.snapshot(kBlock).exits, 7u);
  exits.answer(kBlock, true, false, policy());
  EXPECT_EQ(exits.snapshot(kBlock).exits, 0u);
  EXPECT_EQ(exits.snapshot(kBlock).retries, 1u);
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(exits.count(kBlock));
  EXPECT_TRUE(exits.count(kBlock));
  exits.answer(kBlock, true, true, policy());
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(exits.count(kBlock)) << "banned";
  ASSERT_EQ(exits.report().size(), 1u);
  EXPECT_TRUE(exits.report()[0].banned);
  EXPECT_EQ(exits.report()[0].exits, 1017u);
}

TEST(MethodExits, a_block_is_kept_after_an_exit_until_a_version_has_had_none) {
  MethodExits exits(body(), jit::find_loop_forest(body()), policy());
  constexpr uint32_t kBlock = 2 + 2;
  EXPECT_EQ(exits.kept_blocks(false), (std::vector<uint8_t>{0, 0, 0, 0}));
  exits.count(kBlock);
  EXPECT_EQ(exits.kept_blocks(false), (std::vector<uint8_t>{0, 0, 1, 0}));
  exits.compiled();
  EXPECT_EQ(exits.kept_blocks(true), (std::vector<uint8_t>{0, 0, 1, 0})) << "as in the whole";
  EXPECT_EQ(exits.kept_blocks(false), (std::vector<uint8_t>{0, 0, 0, 0}));
  exits.count(kBlock);
  exits.answer(kBlock, false, true, policy());
  exits.compiled();
  EXPECT_EQ(exits.kept_blocks(false), (std::vector<uint8_t>{0, 0, 1, 0})) << "banned";
}

}  // namespace
}  // namespace uptier::tiering::exit_policy_test
