// Short blocks that are frequent jump targets are emitted in place of the jump.
#include <bit>

#include "tests/support/opt_harness.h"

namespace uptier::test::emit_tails_test {
namespace {

// A loop with two long paths and a short join block. `join` computes v22 from v3, v5 and v20.
std::string loop_of(const std::string& join) {
  std::string ways;
  for (const char* block : {"b2", "b3"}) {
    bool first = std::string_view(block) == "b2";
    std::string n = first ? "3" : "4", op = first ? "mul" : "xor";
    ways += std::string(block) + ":\n  probe block " + (first ? "3" : "4") + "\n";
    std::string last = "v4";
    for (int k = 0; k < 5; ++k) {
      std::string v = "v" + n + std::to_string(k);
      ways += "  " + v + " = " + (k % 2 ? "add" : op) + ".i32 " + last + ", v" +
              (k % 2 ? "8" : "3") + "\n";
      last = v;
    }
    ways += "  jump b4(" + last + ")\n";
  }
  return R"(
func @run(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  probe block 1
  v2 = const.i32 0
  jump b1(v0, v1, v2)
b1(v3: i32, v4: i32, v5: i32):
  probe block 2
  v6 = const.i32 1
  v7 = and.i32 v4, v6
  v8 = const.i32 1234567
  branch v7, b2, b3
)" + ways +
         R"(b4(v20: i32):
  probe block 5
  v21 = shr_u.i32 v3, v6
)" + join +
         R"(  branch v21, b1(v21, v20, v22), b5
b5:
  probe block 6
  return v22
}
)";
}

constexpr const char* kShort = "  v22 = add.i32 v5, v20\n";
constexpr const char* kLong = R"(  v23 = shl.i32 v20, v3
  v24 = xor.i32 v23, v5
  v25 = shl.i32 v24, v3
  v26 = xor.i32 v25, v23
  v27 = shl.i32 v26, v3
  v28 = xor.i32 v27, v25
  v22 = mul.i32 v28, v26
)";

size_t jumps(const std::string& text) {
  size_t n = 0;
  for (size_t at = text.find("jmp"); at != std::string::npos; at = text.find("jmp", at + 1)) ++n;
  return n;
}

using Counts = std::vector<uint64_t>;

std::string listing(const std::string& ir, const Counts& counts, Copy copy = Copy::kPlain) {
  auto m = jit::parse_module(ir);
  EXPECT_TRUE(m.ok()) << m.error().message << ir;
  if (!m.ok()) return "";
  CodeMachine machine;
  OptimizedModule code(
      machine, *m, [&](const jit::Function&) { return counts; }, copy);
  const jit::Code& c = *code.codes()[0];
  return disassemble(c.base(), c.size());
}

TEST(EmitTails, a_join_that_both_ways_run_often_is_there_twice) {
  std::string text = listing(loop_of(kShort), {1, 1000, 500, 500, 1000, 1});
  EXPECT_EQ(jumps(text), 0u) << text;
}

TEST(EmitTails, a_rare_way_keeps_its_jump) {
  std::string text = listing(loop_of(kShort), {1, 1000000, 999000, 1000, 1000000, 1});
  EXPECT_EQ(jumps(text), 1u) << text;
}

TEST(EmitTails, a_long_join_is_there_once) {
  std::string text = listing(loop_of(kLong), {1, 1000, 500, 500, 1000, 1});
  EXPECT_EQ(jumps(text), 2u) << text;  // of the peeled first round and of the loop
}

TEST(EmitTails, answers_and_counts_are_the_interpreters_under_any_counts) {
  corpus_raise = raise_in_context;
  for (const char* join : {kShort, kLong}) {
    auto m = jit::parse_module(loop_of(join));
    ASSERT_TRUE(m.ok()) << m.error().message;
    Scratch scratch;
    jit::Interpreter oracle(*m, interpret_options(scratch));
    Random random(11);
    for (int profile = 0; profile < 20; ++profile) {
      auto counts = [&](const jit::Function& f) {
        std::vector<uint64_t> c(f.block_sites);
        for (uint64_t& n : c) n = random.below(1000);
        return profile == 0 ? std::vector<uint64_t>{} : c;
      };
      for (Copy copy : {Copy::kPlain, Copy::kInstrumented}) {
        CodeMachine machine;
        OptimizedModule code(machine, *m, counts, copy);
        uint64_t rounds = 0;
        for (int round = 0; round < 50; ++round) {
          std::vector<uint64_t> args = {1 + random.below(1000), random.next() & UINT32_MAX};
          rounds += static_cast<uint64_t>(std::bit_width(args[0]));
          Answer want = interpret(oracle, MethodId(0), args);
          auto got = machine.run(code.entry(MethodId(0)), m->functions[0].signature(), args);
          ASSERT_EQ(static_cast<uint32_t>(want.bits), static_cast<uint32_t>(got.bits)) << args[0];
        }
        if (copy == Copy::kPlain) continue;
        const std::vector<uint64_t>& seen = code.slabs()[0];
        EXPECT_EQ(seen[4], rounds);
        EXPECT_EQ(seen[2] + seen[3], rounds);
      }
    }
  }
}

}  // namespace
}  // namespace uptier::test::emit_tails_test
