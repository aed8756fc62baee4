// The law of block probes in every pass: after it, the probes of a block run as often as the block
// did before, or the block is unknown.
//
//   A block is unknown in a body that has no probe of it any more, or a remnant: another block
//   stands for it, together with others. It never has too many executions.
//
// The interpreter runs the function as every pass left it. The test prints, for each pass, the
// share of all executions that it made unknown.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>

#include "jit/opt/optimize.h"
#include "jit/probes/probe_law.h"
#include "tests/support/inline_harness.h"

namespace uptier::test::pass_weights_test {
namespace {

// Keeps the function as each pass left it, unless the pass changed nothing that counts.
class Passes final : public jit::PassObserver {
 public:
  void after(std::string_view pass, const jit::Function& f) override {
    steps_.push_back({std::string(pass), f});
  }
  const std::vector<std::pair<std::string, jit::Function>>& steps() const { return steps_; }

 private:
  std::vector<std::pair<std::string, jit::Function>> steps_;
};

// Executions of all blocks in one call, or nothing if it traps.
std::optional<jit::BlockExecutions> count(const jit::Module& module, uint32_t method,
                                          const jit::Module& built, std::span<const uint64_t> args,
                                          Scratch& scratch) {
  jit::Interpreter run(module, interpret_options(scratch));
  scratch.fill();
  if (interpret(run, MethodId(method), args).trap != TrapCode::kNone) return std::nullopt;
  return jit::block_executions(run, built);
}

struct Tally {
  uint64_t executions = 0, calls = 0;
  std::map<std::string, uint64_t> lost;  // by pass: executions that it made unknown
};

// Compares the function after every pass with the module. Returns the first difference, or "".
std::string compare_passes(const jit::Module& module, uint32_t self, const Passes& passes,
                           std::span<const uint64_t> args, Scratch& scratch, Tally& tally) {
  std::optional<jit::BlockExecutions> want = count(module, self, module, args, scratch);
  if (!want) return "";
  ++tally.calls;
  for (const auto& blocks : *want) {
    tally.executions += std::accumulate(blocks.begin(), blocks.end(), uint64_t{0});
  }
  jit::Module changed = module;
  uint64_t before = 0;
  for (const auto& [pass, f] : passes.steps()) {
    changed.functions[self] = f;
    std::optional<jit::BlockExecutions> got = count(changed, self, module, args, scratch);
    if (!got) return pass + ": traps";
    jit::BlockSet unknown = jit::no_blocks(module);
    jit::add_unknown_blocks(f, MethodId(self), unknown);
    const jit::ProbeLaw law = jit::check_probe_law(*want, *got, unknown);
    if (!law.holds) { return pass + ": f" + std::to_string(law.method.index()) + " " + law.text(); }
    if (law.lost > before) tally.lost[pass] += law.lost - before;
    before = std::max(before, law.lost);
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

std::string compare_random(uint64_t seed, const RandomOptions& options, Tally& tally) {
  jit::Module module = random_module(seed, options);
  Random random(seed ^ 0x9a55);
  std::map<std::string, jit::BodyProfile> made;
  ModuleInlinees source(module, [&](const jit::Function& f) {
    auto [at, fresh] = made.try_emplace(f.name);
    if (fresh) at->second = random_profile(f, random);
    return at->second;
  });
  Scratch scratch;
  for (uint32_t m = 0; m < module.functions.size(); ++m) {
    jit::Function f = module.functions[m];
    jit::BodyProfile own = random_profile(f, random);
    Passes passes;
    jit::optimize(f, {.self = MethodId(m), .counts = own.blocks, .source = &source}, &passes);
    const Signature& s = module.functions[m].signature();
    std::vector<uint64_t> args = random_arguments(s, scratch, random);
    std::string wrong = compare_passes(module, m, passes, args, scratch, tally);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

uint64_t seeds(uint64_t fallback) {
  const char* text = std::getenv("UPTIER_RANDOM_SEEDS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

TEST(PassWeights, every_pass_keeps_the_executions_of_blocks_or_makes_them_unknown) {
  corpus_raise = raise_in_context;
  Tally tally;
  for (uint64_t seed = 1; seed <= seeds(150); ++seed) {
    RandomOptions o{.functions = 4, .statements = 16, .variables = 6, .traps = false};
    o.wide = seed % 3 == 0;
    o.odd = seed % 5 == 0;
    ASSERT_EQ("", compare_random(seed, o, tally)) << "seed " << seed;
  }
  EXPECT_GT(tally.calls, 300u);
  uint64_t lost = 0;
  for (const auto& [pass, n] : tally.lost) {
    lost += n;
    std::printf("%-24s %6.2f %%\n", pass.c_str(),
                100.0 * static_cast<double>(n) / static_cast<double>(tally.executions));
  }
  EXPECT_GT(lost, 0u);
  EXPECT_LT(lost, tally.executions / 20);
}

}  // namespace
}  // namespace uptier::test::pass_weights_test
