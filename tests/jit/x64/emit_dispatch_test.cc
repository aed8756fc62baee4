// The dispatch switch of an interpreter loop is duplicated at the ends of its cases.
#include "tests/support/opt_harness.h"

namespace uptier::test::emit_dispatch_test {
namespace {

// Takes the lowest three bits of v1 as an opcode, until v1 is 0.
constexpr const char* kInterpreter = R"(
func @run(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 0
  jump b1(v0, v1)
b1(v2: i32, v3: i32):
  v4 = const.i32 7
  v5 = and.i32 v2, v4
  v6 = const.i32 1
  v7 = shr_u.i32 v2, v6
  switch v5, [b7, b2, b3, b4, b5, b6], b7
b2:
  v8 = add.i32 v3, v2
  jump b1(v7, v8)
b3:
  v9 = mul.i32 v3, v2
  jump b1(v7, v9)
b4:
  v10 = xor.i32 v3, v2
  jump b1(v7, v10)
b5:
  v11 = sub.i32 v3, v7
  jump b1(v7, v11)
b6:
  v12 = add.i32 v3, v4
  jump b1(v7, v12)
b7:
  v13 = add.i32 v3, v6
  branch v7, b1(v7, v13), b8
b8:
  return v13
}
)";

size_t count_of(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(EmitDispatch, each_case_that_comes_back_ends_in_a_switch) {
  auto m = jit::parse_module(kInterpreter);
  ASSERT_TRUE(m.ok()) << m.error().message;
  CodeMachine machine;
  OptimizedModule code(machine, *m);
  const jit::Code& c = *code.codes()[0];
  std::string text = disassemble(c.base(), c.size());
  // Each copy of the dispatch has its own load from the table; the table exists once.
  EXPECT_GE(count_of(text, "movsxd"), 6u) << text;
  EXPECT_LE(c.size(), 400u);
}

// Runs a switch of eight cases over the bits of `mask` and returns its code.
std::string code_of_switch(uint32_t mask) {
  std::string text =
      "func @f(i32) -> i32 {\nb0(v0: i32):\n  v1 = const.i32 " + std::to_string(mask) +
      "\n  v2 = and.i32 v0, v1\n  switch v2, [b1, b2, b3, b1, b4, b2, b3, b4], b5\n"
      "b1:\n  return v0\nb2:\n  v3 = add.i32 v0, v0\n  return v3\n"
      "b3:\n  v4 = mul.i32 v0, v0\n  return v4\nb4:\n  v5 = sub.i32 v1, v0\n  return v5\n"
      "b5:\n  return v1\n}\n";
  jit::Module m = *jit::parse_module(text);
  CodeMachine machine;
  OptimizedModule code(machine, m);
  for (uint64_t n = 0; n < 300; ++n) {
    std::vector<uint64_t> args = {n};
    auto got = machine.run(code.entry(MethodId(0)), m.functions[0].signature(), args);
    const uint64_t answers[] = {n, 2 * n, n * n, n, mask - n, 2 * n, n * n, mask - n};
    uint64_t want = (n & mask) < 8 ? answers[n & mask] : mask;
    EXPECT_EQ(static_cast<uint32_t>(got.bits), static_cast<uint32_t>(want)) << n;
  }
  const jit::Code& c = *code.codes()[0];
  return disassemble(c.base(), c.size());
}

TEST(EmitDispatch, a_table_with_an_entry_for_each_value_needs_no_comparison) {
  EXPECT_EQ(count_of(code_of_switch(7), "jnb"), 0u);
  EXPECT_EQ(count_of(code_of_switch(31), "jnb"), 0u);
  // It would be too large.
  EXPECT_EQ(count_of(code_of_switch(63), "jnb"), 1u);
  EXPECT_EQ(count_of(code_of_switch(UINT32_MAX), "jnb"), 1u);
}

TEST(EmitDispatch, answers_are_the_interpreters_under_any_counts) {
  corpus_raise = raise_in_context;
  auto m = jit::parse_module(kInterpreter);
  ASSERT_TRUE(m.ok()) << m.error().message;
  Scratch scratch;
  jit::Interpreter oracle(*m, interpret_options(scratch));
  Random random(7);
  for (int profile = 0; profile < 20; ++profile) {
    auto counts = [&](const jit::Function& f) {
      std::vector<uint64_t> c(f.block_sites);
      for (uint64_t& n : c) n = random.below(1000);
      return profile == 0 ? std::vector<uint64_t>{} : c;
    };
    for (Copy copy : {Copy::kPlain, Copy::kInstrumented}) {
      CodeMachine machine;
      OptimizedModule code(machine, *m, counts, copy);
      for (int round = 0; round < 50; ++round) {
        std::vector<uint64_t> args = {random.next() & UINT32_MAX};
        Answer want = interpret(oracle, MethodId(0), args);
        auto got = machine.run(code.entry(MethodId(0)), m->functions[0].signature(), args);
        ASSERT_EQ(static_cast<uint32_t>(want.bits), static_cast<uint32_t>(got.bits)) << args[0];
      }
    }
  }
}

}  // namespace
}  // namespace uptier::test::emit_dispatch_test
