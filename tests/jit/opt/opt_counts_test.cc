// Compares the instrumented copy of optimized code with the interpreter: the same answers, and the
// same counts of every block that the code still observes.
#include "tests/support/opt_harness.h"

namespace uptier::test::opt_counts_test {
namespace {

// Returns the sites of a function that its code observes, as flags by block site - 1.
std::vector<bool> observed_blocks(const jit::Code& code, const jit::Function& f) {
  std::vector<bool> seen(f.block_sites);
  for (SiteId s : jit::observed_sites(code)) {
    if (s <= f.block_sites) seen[s - 1] = true;
  }
  return seen;
}

struct Tally {
  uint64_t blocks = 0, unknown = 0, unknown_that_ran = 0, counted = 0, traps = 0;
};

// Compares the counts of all functions with the interpreter's. Returns the first difference, or "".
std::string compare_counts(const jit::Module& module, const OptimizedModule& code,
                           const jit::Interpreter& oracle, Tally& tally) {
  for (uint32_t m = 0; m < module.functions.size(); ++m) {
    const jit::Function& f = module.functions[m];
    std::vector<bool> seen = observed_blocks(*code.codes()[m], f);
    auto want = oracle.site_counts(MethodId(m));
    for (SiteId s = 1; s <= f.block_sites; ++s) {
      uint64_t expected = want.empty() ? 0 : want[s - 1];
      uint64_t got = code.slabs()[m][s - 1];
      ++tally.blocks;
      if (!seen[s - 1]) ++tally.unknown;
      if (!seen[s - 1] && expected != 0) ++tally.unknown_that_ran;
      tally.counted += got;
      if (got == (seen[s - 1] ? expected : 0)) continue;
      return f.name + " block " + std::to_string(s) + (seen[s - 1] ? "" : " (unknown)") + ": " +
             std::to_string(got) + ", not " + std::to_string(expected);
    }
  }
  return "";
}

TEST(OptCounts, corpus_counts_are_the_interpreters) {
  corpus_raise = raise_in_context;
  Scratch scratch;
  Tally tally;
  for (const CorpusFile& file : load_corpus()) {
    CodeMachine machine;
    OptimizedModule code(machine, file.module, nullptr, Copy::kInstrumented);
    jit::Interpreter oracle(file.module, interpret_options(scratch));
    auto address = [&](MethodId m) { return reinterpret_cast<uint64_t>(code.entry(m)); };
    for (const CorpusRun& run : file.runs) {
      // The depth at which the stack is exhausted differs.
      if (run.expected.trap == TrapCode::kStackExhausted) continue;
      scratch.fill();
      interpret(oracle, run.method, run.arguments(scratch, jit::Interpreter::address_of));
      scratch.fill();
      const Signature& s = file.module.functions[run.method.index()].signature();
      auto r = machine.run(code.entry(run.method), s, run.arguments(scratch, address));
      EXPECT_EQ("", run.complaint({r.bits, r.trap}, scratch));
    }
    EXPECT_EQ("", compare_counts(file.module, code, oracle, tally));
  }
  EXPECT_GT(tally.counted, 1000u);
}

// Runs a random module in instrumented copies. Returns the first difference, or "".
std::string compare_random(uint64_t seed, const RandomOptions& options, Tally& tally,
                           const OptimizedModule::Counts& counts = nullptr) {
  jit::Module module = random_module(seed, options);
  Scratch scratch;
  jit::Interpreter oracle(module, interpret_options(scratch));
  CodeMachine machine;
  OptimizedModule code(machine, module, counts, Copy::kInstrumented);
  Random random(seed ^ 0x5eed);
  for (uint32_t f = 0; f < module.functions.size(); ++f) {
    const Signature& s = module.functions[f].signature();
    for (int round = 0; round < 3; ++round) {
      std::vector<uint64_t> args = random_arguments(s, scratch, random);
      bool traps = false;
      bool same = answers_alike(machine, code, oracle, MethodId(f), s, args, scratch, traps);
      tally.traps += traps;
      if (!same) return "seed " + std::to_string(seed) + " f" + std::to_string(f) + ": answer";
    }
  }
  std::string difference = compare_counts(module, code, oracle, tally);
  return difference.empty() ? "" : "seed " + std::to_string(seed) + " " + difference;
}

uint64_t seeds(uint64_t fallback) {
  const char* text = std::getenv("UPTIER_RANDOM_SEEDS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

// 700 modules of three functions.
TEST(OptCounts, random_programs_count_as_the_interpreter_does) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= seeds(700); ++seed) {
    ASSERT_EQ("", compare_random(seed, {.guards = true}, tally));
  }
  EXPECT_GT(tally.traps, 0u);
  // Only conditions that the compiler decides make blocks unobserved; the passes remove no other
  // blocks.
  EXPECT_GT(tally.unknown, 0u);
  EXPECT_LT(tally.unknown, tally.blocks / 4);
  EXPECT_EQ(tally.unknown_that_ran, 0u);
}

// Many live values: the slab's address is spilled, and every count reloads it.
TEST(OptCounts, counts_are_exact_where_registers_are_short) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= seeds(30); ++seed) {
    ASSERT_EQ("", compare_random(seed + 100'000,
                                 {.functions = 2, .statements = 200, .variables = 50, .depth = 5},
                                 tally));
  }
}

TEST(OptCounts, no_profile_changes_a_count) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= seeds(100); ++seed) {
    Random random(seed);
    auto counts = [&](const jit::Function& f) {
      std::vector<uint64_t> c(f.block_sites);
      for (uint64_t& n : c) n = random.chance(30) ? 0 : random.next() >> random.below(64);
      return c;
    };
    ASSERT_EQ("", compare_random(seed + 200'000, {}, tally, counts));
  }
}

// The load could be folded into the addition after the second block's probe. That must not happen,
// or a block would be counted that was never reached.
TEST(OptCounts, a_trap_is_on_its_side_of_the_count) {
  jit::Module m = *jit::parse_module(R"(
func @f(ref, i32) -> i32 {
b0(v0: ref, v1: i32):
  v2 = load.i32 v0 traps
  jump b1
b1:
  v3 = add.i32 v1, v2
  return v3
}
)");
  Scratch scratch;
  CodeMachine machine;
  OptimizedModule code(machine, m, nullptr, Copy::kInstrumented);
  const Signature& s = m.functions[0].signature();
  auto outside = machine.run(code.entry(MethodId(0)), s, {scratch.base() + Scratch::kSize, 1});
  EXPECT_EQ(outside.trap, TrapCode::kOutOfBoundsMemory);
  EXPECT_EQ(code.slabs()[0], (std::vector<uint64_t>{1, 0}));
  auto inside = machine.run(code.entry(MethodId(0)), s, {scratch.base(), 1});
  EXPECT_EQ(inside.trap, TrapCode::kNone);
  EXPECT_EQ(code.slabs()[0], (std::vector<uint64_t>{2, 1}));
}

// ---- Code
// -----------------------------------------------------------------------------------------

// Compiles functions one by one.
class Compiler : private jit::CallResolver {
 public:
  std::unique_ptr<jit::Code> must(const jit::Function& f, const jit::OptimizeRequest& r) {
    return CodeMachine::take(compile(f, r));
  }
  Result<std::unique_ptr<jit::Code>> compile(const jit::Function& f,
                                             const jit::OptimizeRequest& r) {
    jit::Helpers helpers;
    helpers.trap_exit = machine_.routines->trap_exit();
    for (uint32_t i = 0; i < jit::kProbeRoutines; ++i) {
      helpers.probes[i] = machine_.routines->probe(static_cast<jit::ProbeRoutine>(i));
    }
    return jit::compile_optimized({f, MethodId(0), helpers, *this, *machine_.space}, r);
  }
  std::string text(const jit::Function& f, const jit::OptimizeRequest& r) {
    auto code = must(f, r);
    return disassemble(code->base(), code->size());
  }

 private:
  jit::CallTarget target(MethodId) override { return {jit::CallTarget::Kind::kSelf, nullptr}; }
  CodeMachine machine_;
};

jit::OptimizeRequest request(Copy copy, const jit::ProbePlan* probes = nullptr) {
  return {.copy = copy, .probes = probes};
}

jit::Function without_probes(jit::Function f) {
  for (Block b : f.layout) {
    std::erase_if(f.block(b).insts, [&](jit::InstId i) { return f.inst(i).op == Opcode::kProbe; });
  }
  return f;
}

// Every program of tests/ir/, with and without probes, with and without a plan.
TEST(OptCounts, plain_code_does_not_know_of_probes) {
  Compiler c;
  int compared = 0;
  for (const CorpusFile& file : load_corpus()) {
    for (const jit::Function& f : file.module.functions) {
      jit::ProbePlan plan = jit::plan_probes(f, {.flow = FlowMode::kBlocks});
      jit::plan_sites(f, {.host_probes = true}, plan);
      std::string bare = c.text(without_probes(f), request(Copy::kPlain));
      ASSERT_EQ(bare, c.text(f, request(Copy::kPlain))) << f.name;
      ASSERT_EQ(bare, c.text(f, request(Copy::kPlain, &plan))) << f.name;
      ASSERT_EQ(bare, c.text(without_probes(f), request(Copy::kInstrumented, &plan))) << f.name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 500);
}

// Programs with probes of every kind.
TEST(OptCounts, plain_code_does_not_know_of_probes_of_values) {
  Compiler c;
  int differ = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    jit::Module module = random_module(seed, {.functions = 1, .statements = 80});
    const jit::Function& f = module.functions[0];
    jit::ProbePlan plan = jit::plan_probes(f, {.flow = FlowMode::kBlocks});
    jit::plan_sites(f, {.call_targets = true, .host_probes = true}, plan);
    std::string bare = c.text(without_probes(f), request(Copy::kPlain));
    ASSERT_EQ(bare, c.text(f, request(Copy::kPlain))) << seed;
    ASSERT_EQ(bare, c.text(f, request(Copy::kPlain, &plan))) << seed;
    jit::ProbePlan blocks = jit::plan_probes(f, {.flow = FlowMode::kBlocks});
    differ += c.text(f, request(Copy::kInstrumented, &plan)) !=
              c.text(f, request(Copy::kInstrumented, &blocks));
  }
  EXPECT_GT(differ, 50);
}

TEST(OptCounts, a_copy_differs_from_the_plain_code_by_its_counts) {
  jit::Module m = *jit::parse_module(R"(
func @pick(i32) -> i32 {
b0(v0: i32):
  branch v0, b1, b2
b1:
  jump b3(v0)
b2:
  v1 = const.i32 7
  jump b3(v1)
b3(v2: i32):
  jump b4
b4:
  return v2
}
)");
  Compiler c;
  auto plain = c.must(m.functions[0], request(Copy::kPlain));
  auto copy = c.must(m.functions[0], request(Copy::kInstrumented));
  // b4 is appended to b3. Where two probes have no code between them, both have the address.
  EXPECT_EQ(jit::observed_sites(*plain), (std::vector<SiteId>{1, 2, 3, 4, 5}));
  EXPECT_EQ(jit::observed_sites(*copy), (std::vector<SiteId>{1, 2, 3, 4, 5}));
  std::string text = disassemble(copy->base(), copy->size());
  size_t counts = 0;
  for (size_t at = 0; (at = text.find("inc ", at)) != std::string::npos; ++at) ++counts;
  EXPECT_EQ(counts, 5u) << text;
}

TEST(OptCounts, a_plan_that_cannot_be_counted_by_is_refused) {
  Compiler c;
  jit::Module m = random_module(1);
  for (jit::ProbeRequest r :
       {jit::ProbeRequest{FlowMode::kEdges},
        jit::ProbeRequest{FlowMode::kBlocks, CounterMode::kInterlocked},
        jit::ProbeRequest{FlowMode::kBlocks, CounterMode::kPerThread, true}}) {
    jit::ProbePlan plan = jit::plan_probes(m.functions[0], r);
    auto code = c.compile(m.functions[0], request(Copy::kInstrumented, &plan));
    ASSERT_FALSE(code.ok());
    EXPECT_EQ(code.error().code, ErrorCode::kUnsupported);
  }
}

}  // namespace
}  // namespace uptier::test::opt_counts_test
