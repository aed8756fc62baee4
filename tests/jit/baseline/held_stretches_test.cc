// Held stretches: which loops keep their countdown in a register, and that no call in such a loop
// loses it.
#include "jit/baseline/held_stretches.h"

#include <gtest/gtest.h>

#include "tests/support/baseline_module.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::held_stretches_test {
namespace {

// A loop of v0 rounds. Each round runs `head`, which goes to b2, or to b3 for the next round.
jit::Module loop_with(const std::string& head, const std::string& more = "") {
  return parse_or_die(R"(
func @g(i64) -> i64 {
b0(v0: i64):
  return v0
}
func @f(i64, i64) -> i64 {
b0(v0: i64, v1: i64):
  v2 = const.i64 1
  v3 = const.i64 0
  jump b1(v3)
b1(v4: i64):
  loop_header 0 pc=0 []
)" + head + R"(
b3:
  v5 = add.i64 v4, v2
  v6 = lt_u.i64 v5, v0
  branch v6, b1(v5), b4
b4:
  return v5
)" + more + "}\n");
}

// Returns one character for each block of f: x if it is held, otherwise -.
std::string held(const jit::Module& m) {
  const jit::Function& f = m.functions[1];
  std::vector<bool> blocks = jit::baseline::find_held(f);
  std::string text;
  for (Block b : f.layout) text += blocks.empty() ? '-' : blocks[b.index()] ? 'x' : '-';
  return text;
}

TEST(HeldStretches, are_loops_that_call_nothing_or_rarely) {
  EXPECT_EQ(held(loop_with("  jump b3\n")), "-xx-");
  EXPECT_EQ(held(loop_with("  v7 = call @g(v4)\n  jump b3\n")), "----") << "in each round";
  EXPECT_EQ(held(loop_with(R"(
  v7 = and.i64 v4, v2
  v8 = eqz.i64 v7
  branch v8, b2, b3
b2:
  v9 = call @g(v4)
  jump b3
)")),
            "-----")
      << "in every other round";
  EXPECT_EQ(held(loop_with(R"(
  v7 = wrap.i32 v4
  switch v7, [b2, b3, b3], b3
b2:
  v9 = call @g(v4)
  jump b3
)")),
            "-xxx-")
      << "in a quarter of the rounds";
}

TEST(HeldStretches, do_not_take_a_way_out_or_a_trap_for_half_of_the_rounds) {
  EXPECT_EQ(held(loop_with(R"(
  v7 = eq.i64 v4, v1
  branch v7, b4, b5
b5:
  v8 = eq.i64 v4, v0
  branch v8, b4, b2
b2:
  v9 = call @g(v4)
  jump b3
)")),
            "------")
      << "a call behind two ways out is one in each round";
  EXPECT_EQ(held(loop_with(R"(
  v7 = eq.i64 v4, v1
  branch v7, b2, b3
b2:
  v9 = call @g(v4)
  trap unreachable
)")),
            "-xxx-")
      << "what traps is not there to run";
}

// In every eighth round f calls itself, which uses the same countdown, and then g, which keeps a
// different countdown in the same register.
TEST(HeldStretches, count_each_round_across_calls) {
  constexpr const char* kText = R"(
func @f(i64, i64) -> i64 {
b0(v0: i64, v1: i64):
  v2 = const.i64 1
  v3 = const.i64 0
  v4 = const.i64 7
  jump b1(v3)
b1(v5: i64):
  loop_header 0 pc=0 []
  v6 = eqz.i64 v1
  v7 = and.i64 v5, v4
  v8 = wrap.i32 v7
  switch v8, [b2, b3, b3, b3, b3, b3, b3], b3
b2:
  branch v6, b3, b5
b5:
  v9 = sub.i64 v1, v2
  v10 = call @f(v0, v9)
  v13 = call @g(v2)
  jump b3
b3:
  v11 = add.i64 v5, v2
  v12 = lt_u.i64 v11, v0
  branch v12, b1(v11), b4
b4:
  return v11
}

func @g(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 3
  jump b1(v0)
b1(v2: i64):
  loop_header 0 pc=0 []
  v3 = add.i64 v2, v2
  v4 = lt_u.i64 v3, v1
  branch v4, b1(v3), b2
b2:
  return v3
}
)";
  jit::Module module = parse_or_die(kText);
  ASSERT_FALSE(jit::baseline::find_held(module.functions[0]).empty());
  constexpr uint64_t kRounds = 40;
  for (uint64_t depth = 0; depth < 5; ++depth) {
    CodeMachine machine;
    BaselineModule compiled(machine, module, BaselineModule::Use::kPlain);
    ASSERT_EQ(compiled.run(MethodId(0), {kRounds, depth}).bits, kRounds);
    uint64_t rounds = kRounds;
    for (uint64_t d = 0; d < depth; ++d) rounds = kRounds + kRounds / 8 * rounds;
    int32_t left = machine.thread.method(0).loop_countdown;
    EXPECT_EQ(static_cast<uint64_t>(AttachedThread::kNever - left), rounds);
  }
}

}  // namespace
}  // namespace uptier::test::held_stretches_test
