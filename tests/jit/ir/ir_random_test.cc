// Random programs are well formed, they terminate, and their results depend on the seed only.
#include "tests/support/random_ir.h"

#include <gtest/gtest.h>

#include <map>

namespace uptier::test::ir_random_test {
namespace {

constexpr uint64_t kSeeds = 300;

MethodId last_of(const jit::Module& m) {
  return MethodId(static_cast<uint32_t>(m.functions.size() - 1));
}

// Runs the last function of a module; returns the answer and the memory afterwards.
std::string run(const jit::Module& m, uint64_t seed, Scratch& scratch, uint64_t* steps) {
  scratch.fill();
  corpus_notes = 0;
  jit::Interpreter interpreter(m, interpret_options(scratch));
  const Signature& s = m.functions.back().signature();
  Random r(seed);
  Answer a = interpret(interpreter, last_of(m), random_arguments(s, scratch, r));
  *steps = interpreter.steps();
  bool trapped = a.trap != TrapCode::kNone;
  return answer_text(s.result, is_nan(s.result, a.bits) && !trapped ? Answer{} : a) + " " +
         std::to_string(corpus_notes) + scratch.bytes();
}

TEST(RandomIr, programs_verify) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Status s = jit::verify(random_module(seed, {.guards = seed % 2 == 0, .odd = seed % 3 == 0}));
    ASSERT_TRUE(s.ok()) << "seed " << seed << ": " << s.error().message;
  }
}

TEST(RandomIr, wide_programs_verify_and_end) {
  Scratch scratch;
  std::map<Opcode, int> seen;
  uint64_t most = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    jit::Module m = random_module(
        seed, {.guards = seed % 2 == 0, .odd = seed % 3 == 0, .counts = true, .wide = true});
    Status s = jit::verify(m);
    ASSERT_TRUE(s.ok()) << "seed " << seed << ": " << s.error().message;
    uint64_t steps = 0;
    run(m, seed, scratch, &steps);
    most = std::max(most, steps);
    for (const jit::Function& f : m.functions) {
      for (const jit::Inst& i : f.insts) ++seen[i.op];
    }
  }
  EXPECT_LT(most, 4'000'000u);
  EXPECT_GT(seen[Opcode::kCallIndirect], 100);
}

TEST(RandomIr, programs_print_and_parse_back) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::string text = jit::to_text(random_module(seed));
    auto again = jit::parse_module(text, {"random", corpus_hosts()});
    ASSERT_TRUE(again.ok()) << again.error().message;
    ASSERT_TRUE(jit::verify(*again).ok()) << jit::verify(*again).error().message;
    EXPECT_EQ(text, jit::to_text(*again));
  }
}

TEST(RandomIr, a_seed_gives_one_program) {
  EXPECT_EQ(jit::to_text(random_module(7)), jit::to_text(random_module(7)));
  EXPECT_NE(jit::to_text(random_module(7)), jit::to_text(random_module(8)));
}

// A program and its parsed text form have the same effects.
TEST(RandomIr, programs_end_and_their_text_does_the_same) {
  Scratch scratch;
  uint64_t trapped = 0, most = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    jit::Module m = random_module(seed);
    auto again = jit::parse_module(jit::to_text(m), {"random", corpus_hosts()});
    ASSERT_TRUE(again.ok()) << again.error().message;
    for (uint64_t arguments = 0; arguments < 3; ++arguments) {
      uint64_t steps = 0, steps_again = 0;
      std::string answer = run(m, arguments, scratch, &steps);
      ASSERT_EQ(answer, run(*again, arguments, scratch, &steps_again)) << "seed " << seed;
      EXPECT_EQ(steps, steps_again);
      trapped += answer.starts_with("trap");
      most = std::max(most, steps);
    }
  }
  // Most programs must not trap, so that there are results to compare.
  EXPECT_LT(trapped, kSeeds * 3 / 3);
  EXPECT_GT(trapped, 0u);
  EXPECT_LT(most, 2'000'000u);
}

TEST(RandomIr, programs_use_every_operation) {
  std::map<Opcode, int> seen;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const jit::Function& f : random_module(seed, {.guards = true, .counts = true}).functions) {
      for (const jit::Inst& i : f.insts) ++seen[i.op];
    }
  }
  for (unsigned op = 0; op < kOpcodeCount; ++op) {
    auto o = static_cast<Opcode>(op);
    bool left_out = o == Opcode::kCallIndirect || o == Opcode::kTrap ||
                    info(o).shape == Shape::kBulk ||
                    o == Opcode::kFrameMemory;  // of the plain form; see plain_form_test.cc
    EXPECT_TRUE(left_out || seen[o] > 0) << info(o).text;
  }
}

}  // namespace
}  // namespace uptier::test::ir_random_test
