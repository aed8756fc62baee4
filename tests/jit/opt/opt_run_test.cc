// Compares the optimizing compiler with the corpus and, on random programs, with the interpreter.
#include <sys/mman.h>

#include "tests/support/compare.h"
#include "tests/support/hardened.h"
#include "tests/support/opt_harness.h"

namespace uptier::test::opt_run_test {
namespace {

TEST(OptRun, corpus_answers_as_it_says) {
  corpus_raise = raise_in_context;
  CodeMachine machine;
  Scratch scratch;
  size_t runs = 0;
  for (const CorpusFile& file : load_corpus()) {
    OptimizedModule code(machine, file.module);
    auto address = [&](MethodId m) { return reinterpret_cast<uint64_t>(code.entry(m)); };
    for (const CorpusRun& run : file.runs) {
      scratch.fill();
      const Signature& s = file.module.functions[run.method.index()].signature();
      auto r = machine.run(code.entry(run.method), s, run.arguments(scratch, address));
      EXPECT_EQ("", run.complaint({r.bits, r.trap}, scratch));
      ++runs;
    }
  }
  EXPECT_GT(runs, 500u);
}

// Several stores to the same address, some of which may fault: the trap has the location that it
// has without the optimizer, and memory holds exactly the stores before it.
TEST(OptRun, a_store_that_traps_for_another_says_where_that_was) {
  jit::Module module = *jit::parse_module(R"(
func @same(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  store.i32 v1, v0[v1] traps @1
  store.i32 v1, v0[v1] traps @2
  store8.i32 v1, v0[v1] traps @3
  return v1
}
func @wider(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = const.i64 -1
  store32.i64 v2, v0[v1] traps @1
  store.i64 v2, v0[v1] traps @2
  store.i32 v1, v0[v1] traps @3
  return v1
}
func @between(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  store.i32 v1, v0[v1] traps class 1 @1
  store.i32 v1, v0+64 class 2 @2
  store.i32 v1, v0[v1] traps class 1 @3
  return v1
}
)",
                                          {"stores", {}});
  Scratch scratch;
  jit::Interpreter oracle(module, interpret_options(scratch));
  CodeMachine machine;
  OptimizedModule code(machine, module);
  const Signature& s = module.functions[0].signature();
  size_t trapped = 0;
  for (uint32_t f = 0; f < 3; ++f) {
    for (uint64_t index = Scratch::kSize - 12; index < Scratch::kSize + 4; ++index) {
      SCOPED_TRACE(module.functions[f].name + " " + std::to_string(index));
      const uint64_t args[] = {scratch.base(), index};
      scratch.fill();
      jit::InterpretOutcome want = oracle.run(MethodId(f), args);
      std::string stored = scratch.bytes();
      scratch.fill();
      CodeMachine::Ran ran = machine.run(code.entry(MethodId(f)), s, {args[0], args[1]});
      EXPECT_EQ(ran.trap, want.trap);
      EXPECT_EQ(ran.location, want.location);
      EXPECT_EQ(scratch.bytes(), stored);
      trapped += ran.trap != TrapCode::kNone;
    }
  }
  EXPECT_EQ(trapped, 7u + 11u + 7u);
}

// Compiles a module and compares every function with the interpreter, with arguments from `seed`.
// Returns the first difference, or "".
std::string compare_module(const jit::Module& module, uint64_t seed,
                           const OptimizedModule::Counts& counts = nullptr) {
  Scratch scratch;
  jit::Interpreter oracle(module, interpret_options(scratch));
  CodeMachine machine;
  OptimizedModule code(machine, module, counts);
  Random random(seed ^ 0x5eed);
  for (uint32_t f = 0; f < module.functions.size(); ++f) {
    const Signature& s = module.functions[f].signature();
    for (int round = 0; round < 3; ++round) {
      std::vector<uint64_t> args = random_arguments(s, scratch, random);
      Expected want = expected_of(oracle, MethodId(f), args, scratch);
      std::string what = difference(want, s.result, scratch,
                                    [&] { return machine.run(code.entry(MethodId(f)), s, args); });
      if (!what.empty()) {
        return "seed " + std::to_string(seed) + " f" + std::to_string(f) + " round " +
               std::to_string(round) + ": " + what;
      }
    }
  }
  return "";
}

std::string compare_random(uint64_t seed, const RandomOptions& options,
                           const OptimizedModule::Counts& counts = nullptr) {
  return compare_module(random_module(seed, options), seed, counts);
}

uint64_t seeds() {
  const char* text = std::getenv("UPTIER_RANDOM_SEEDS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 200;
}

TEST(OptRun, random_programs_answer_as_the_interpreter_does) {
  corpus_raise = raise_in_context;
  for (uint64_t seed = 1; seed <= seeds(); ++seed) { ASSERT_EQ("", compare_random(seed, {})); }
}

// Blinds every constant that takes four bytes in an instruction.
TEST(OptRun, blinded_random_programs_answer_as_the_interpreter_does) {
  Hardened on({.blind_constants = true, .blind_above = 127, .landing_pads = true});
  corpus_raise = raise_in_context;
  for (uint64_t seed = 1; seed <= seeds() / 4; ++seed) {
    ASSERT_EQ("", compare_random(seed + 500'000, {.guards = true, .odd = seed % 2 == 0}));
  }
}

TEST(OptRun, odd_programs_answer_as_the_interpreter_does) {
  corpus_raise = raise_in_context;
  for (uint64_t seed = 1; seed <= seeds(); ++seed) {
    ASSERT_EQ("", compare_random(seed + 300'000, {.guards = seed % 2 == 0, .odd = true}));
  }
}

TEST(OptRun, large_random_programs_answer_as_the_interpreter_does) {
  corpus_raise = raise_in_context;
  for (uint64_t seed = 1; seed <= seeds() / 6; ++seed) {
    ASSERT_EQ("", compare_random(seed + 100'000,
                                 {.functions = 2, .statements = 200, .variables = 50, .depth = 5}));
  }
}

// A comparison is used inverted as a value here, and as a condition in another block. It is emitted
// twice, so the operand that it loads must be in a register for both.
TEST(OptRun, a_comparison_that_is_made_twice_has_its_operands_twice) {
  auto module = jit::parse_module(R"(
func @floats(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = const.f32 61.125
  v3 = load.f32 v0+8
  v4 = feq.f32 v2, v3
  v5 = eqz.i32 v4
  branch v1, b1, b2
b1:
  branch v5, b3, b2
b2:
  return v5
b3:
  return v1
}
func @ints(ref, i64, i32) -> i32 {
b0(v0: ref, v1: i64, v2: i32):
  v3 = load.i64 v0+8
  v4 = lt_s.i64 v1, v3
  v5 = eqz.i32 v4
  branch v2, b1, b2
b1:
  branch v5, b3, b2
b2:
  return v5
b3:
  return v2
}
)");
  ASSERT_TRUE(module.ok()) << module.error().message;
  for (uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ("", compare_module(*module, seed));
}

// Operand indices are stored in bytes, which suffice for common calls only.
TEST(OptRun, constants_are_passed_in_any_of_300_arguments) {
  constexpr int kCount = 300;
  std::string params, types, body, args, constants;
  auto v = [](int n) { return "v" + std::to_string(n); };
  for (int n = 0; n < kCount; ++n) {
    params += (n == 0 ? "" : ", ") + v(n) + ": i32";
    types += n == 0 ? "i32" : ", i32";
    // sum = (sum + argument) * 31
    std::string sum = v(n == 0 ? kCount : kCount + 2 * n);
    body += "  " + v(kCount + 2 * n + 1) + " = add.i32 " + sum + ", " + v(n) + "\n";
    body += "  " + v(kCount + 2 * n + 2) + " = mul.i32 " + v(kCount + 2 * n + 1) + ", " +
            v(kCount + 2 * kCount + 1) + "\n";
    constants += "  " + v(n + 1) + " = const.i32 " + std::to_string(7 * n + 1) + "\n";
    args += (n == 0 ? "" : ", ") + v(n % 3 == 0 ? 0 : n + 1);
  }
  std::string last = v(3 * kCount), result = v(kCount + 1);
  auto module = jit::parse_module(
      "func @sum(" + types + ") -> i32 {\nb0(" + params + "):\n  " + v(kCount) +
      " = const.i32 0\n  " + v(3 * kCount + 1) + " = const.i32 31\n" + body + "  return " + last +
      "\n}\nfunc @pass(i32) -> i32 {\nb0(v0: i32):\n" + constants + "  " + result +
      " = call @sum(" + args + ")\n  return " + result + "\n}\n");
  ASSERT_TRUE(module.ok()) << module.error().message;
  EXPECT_EQ("", compare_module(*module, 1));
}

// The store faults, not the load; only the store is marked as one that may trap.
TEST(OptRun, what_is_read_and_cannot_be_written_traps_as_the_store_says) {
  corpus_raise = raise_in_context;
  auto module = jit::parse_module(R"(
func @add(ref) -> i32 {
b0(v0: ref):
  v1 = load.i32 v0
  v2 = const.i32 5
  v3 = add.i32 v1, v2
  store.i32 v3, v0 traps
  return v2
}
)");
  ASSERT_TRUE(module.ok()) << module.error().message;
  constexpr size_t kPage = 4096;
  void* page = ::mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  CodeMachine machine;
  OptimizedModule code(machine, *module);
  auto r = machine.run(code.entry(MethodId(0)), module->functions[0].signature(),
                       {reinterpret_cast<uint64_t>(page)});
  EXPECT_EQ(r.trap, TrapCode::kOutOfBoundsMemory);
  ::munmap(page, kPage);
}

// A profile is advice: no counts change an answer.
TEST(OptRun, no_profile_changes_an_answer) {
  corpus_raise = raise_in_context;
  for (uint64_t seed = 1; seed <= seeds(); ++seed) {
    Random random(seed);
    auto counts = [&](const jit::Function& f) {
      std::vector<uint64_t> c(random.chance(20) ? f.block_sites / 2 : f.block_sites);
      for (uint64_t& n : c) {
        n = random.chance(30)   ? 0
            : random.chance(10) ? UINT64_MAX
                                : random.next() >> random.below(64);
      }
      return c;
    };
    ASSERT_EQ("", compare_random(seed + 200'000, {}, counts));
  }
}

}  // namespace
}  // namespace uptier::test::opt_run_test
