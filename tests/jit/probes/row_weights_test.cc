// The law of probe rows: how often the rows of a block are reached is how often the block ran.
//
//   sum over the rows of a block of (starts of the row's first instruction) = executions of the block
//
// It holds for every body of plain code in both tiers, in calls that no trap ends. A block without
// a row is unknown: passes merged it with others, or no instruction was left of it. The steps of
// the processor say how often a row was reached, the interpreter how often a block ran.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "tests/support/baseline_module.h"
#include "tests/support/inline_harness.h"
#include "tests/support/inlined_expected.h"
#include "tests/support/stepped_code.h"

namespace uptier::test::row_weights_test {
namespace {

struct Tally {
  uint64_t blocks = 0, copied = 0, inlined = 0;  // with rows
  uint64_t known = 0, partial = 0, unknown = 0;  // executions of blocks
  double unknown_share() const {
    return static_cast<double>(partial + unknown) / static_cast<double>(known + partial + unknown);
  }
};

// The starts of the rows of one code, by body and block.
class Rows {
 public:
  Rows(const jit::Code& code, const StepCounter& steps) {
    for (const jit::ProbeRow& r : code.tables().probes) {
      if (!r.starts) continue;
      Block& b = blocks_[{r.body, r.site}];
      b.starts += steps.starts(code, r.offset);
      b.partial |= r.partial;
      ++b.rows;
    }
  }

  // Compares a block with its executions. Returns the difference, or "".
  std::string compare(uint32_t body, SiteId site, uint64_t ran, Tally& tally) const {
    auto at = blocks_.find({body, site});
    if (at == blocks_.end()) {
      tally.unknown += ran;
      return "";
    }
    const Block& b = at->second;
    ++tally.blocks;
    tally.inlined += body != 0;
    tally.copied += b.rows > 1;
    (b.partial ? tally.partial : tally.known) += ran;
    if (b.partial ? b.starts <= ran : b.starts == ran) return "";
    return " body " + std::to_string(body) + " block " + std::to_string(site) + ": " +
           std::to_string(b.starts) + " starts, " + std::to_string(ran) + " executions";
  }

 private:
  struct Block {
    uint64_t starts = 0;
    int rows = 0;
    bool partial = false;
  };
  std::map<std::pair<uint32_t, SiteId>, Block> blocks_;
};

using CodeOf = std::function<const jit::Code*(uint32_t)>;
using EntryOf = std::function<const void*(uint32_t)>;

// Calls every function of a module, and compares the rows of their codes. Returns the first
// difference, or "".
std::string step_through(const jit::Module& module, CodeMachine& machine, const CodeOf& code,
                         const EntryOf& entry, Random& random, Tally& tally) {
  Scratch scratch;
  InlinedExpected expected(code, [&](uint32_t m) { return module.functions[m].loop_count; });
  expected.keeps_values = false;
  jit::InterpretOptions watched = interpret_options(scratch);
  watched.observer = &expected;
  jit::Interpreter oracle(module, watched);
  std::vector<const jit::Code*> codes;
  for (uint32_t m = 0; m < module.functions.size(); ++m) codes.push_back(code(m));
  StepCounter steps(codes);
  for (uint32_t f = 0; f < module.functions.size(); ++f) {
    const Signature& s = module.functions[f].signature();
    std::vector<uint64_t> args = random_arguments(s, scratch, random);
    scratch.fill();
    expected.begin();
    Answer want = interpret(oracle, MethodId(f), args);
    scratch.fill();
    steps.begin();
    auto got = machine.run(entry(f), s, args);
    steps.end();
    if (want.trap != TrapCode::kNone) return "";  // the law does not hold
    if (!same_value(s.result, got.bits, want.bits)) return module.functions[f].name + ": answer";
  }
  for (uint32_t m = 0; m < module.functions.size(); ++m) {
    Rows rows(*codes[m], steps);
    for (uint32_t b = 0; b <= codes[m]->tables().inlined.size(); ++b) {
      MethodId of = b == 0 ? MethodId(m) : codes[m]->tables().inlined[b - 1].method;
      for (SiteId s = 1; s <= module.functions[of.index()].block_sites; ++s) {
        std::string wrong = rows.compare(b, s, expected.at(m, b, s), tally);
        if (!wrong.empty()) return module.functions[m].name + wrong;
      }
    }
  }
  return "";
}

jit::BodyProfile random_profile(const jit::Function& f, Random& random) {
  jit::BodyProfile p;
  for (uint32_t b = 0; b < f.block_sites; ++b) {
    p.blocks.push_back(random.chance(10) ? 0 : random.next() >> (40 + random.below(10)));
  }
  return p;
}

std::string step_optimized(uint64_t seed, const RandomOptions& options, Tally& tally) {
  jit::Module module = random_module(seed, options);
  CodeMachine machine;
  Random random(seed ^ 0x57e9);
  std::map<std::string, jit::BodyProfile> made;
  auto profiles = [&](const jit::Function& f) {
    auto [at, fresh] = made.try_emplace(f.name);
    if (fresh) at->second = random_profile(f, random);
    return at->second;
  };
  ModuleInlinees source(module, profiles);
  OptimizedModule code(machine, module, source, profiles, Copy::kPlain);
  return step_through(
      module, machine, [&](uint32_t m) { return code.codes()[m].get(); },
      [&](uint32_t m) { return code.entry(MethodId(m)); }, random, tally);
}

std::string step_baseline(uint64_t seed, const RandomOptions& options, Tally& tally) {
  jit::Module module = random_module(seed, options);
  CodeMachine machine;
  Random random(seed ^ 0x57e9);
  BaselineModule code(machine, module, BaselineModule::Use::kPlain);
  return step_through(
      module, machine, [&](uint32_t m) { return &code.code(m, Copy::kPlain); },
      [&](uint32_t m) { return machine.stubs->stub(MethodId(m)); }, random, tally);
}

uint64_t seeds(uint64_t fallback) {
  const char* text = std::getenv("UPTIER_RANDOM_SEEDS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

TEST(RowWeights, rows_of_optimized_code_are_reached_as_often_as_their_blocks_run) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= seeds(120); ++seed) {
    RandomOptions o{
        .functions = 4, .statements = 14, .variables = 6, .traps = false, .addresses = false};
    if (seed % 3 == 0) o.wide = true;
    if (seed % 5 == 0) o.odd = true;
    ASSERT_EQ("", step_optimized(seed, o, tally)) << "seed " << seed;
  }
  RecordProperty("unknown_share", std::to_string(tally.unknown_share()));
  EXPECT_GT(tally.known, 5000u);
  EXPECT_GT(tally.copied, 300u);
  EXPECT_GT(tally.inlined, 300u);
  EXPECT_GT(tally.unknown, 0u);
  EXPECT_LT(tally.unknown_share(), 0.10);
}

TEST(RowWeights, rows_of_larger_bodies_are_too) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= seeds(40); ++seed) {
    RandomOptions o{
        .functions = 3, .statements = 60, .variables = 20, .traps = false, .addresses = false};
    o.wide = seed % 2 == 0;
    ASSERT_EQ("", step_optimized(seed + 10'000, o, tally)) << "seed " << seed;
  }
  RecordProperty("unknown_share", std::to_string(tally.unknown_share()));
  EXPECT_GT(tally.known, 5000u);
  EXPECT_LT(tally.unknown_share(), 0.10);
}

// Blocks that only jump have no instruction, and so no row.
TEST(RowWeights, rows_of_baseline_code_are_reached_as_often_as_their_blocks_run) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= seeds(60); ++seed) {
    RandomOptions o{
        .functions = 4, .statements = 14, .variables = 6, .traps = false, .addresses = false};
    o.wide = seed % 3 == 0;
    ASSERT_EQ("", step_baseline(seed, o, tally)) << "seed " << seed;
  }
  RecordProperty("unknown_share", std::to_string(tally.unknown_share()));
  EXPECT_GT(tally.known, 2000u);
  EXPECT_EQ(tally.partial, 0u);
  EXPECT_LT(tally.unknown_share(), 0.20);
}

}  // namespace
}  // namespace uptier::test::row_weights_test
