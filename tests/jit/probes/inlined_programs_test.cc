// Example programs in instrumented copies of optimized code with inlined bodies: their output, and
// the counts of each body at each place, against the reference interpreter.
#include <gtest/gtest.h>

#include "jit/compile/compile.h"
#include "jit/frontend/builder_access.h"
#include "jit/frontend/verify.h"
#include "jit/probes/plan_sites.h"
#include "tests/support/code_machine.h"
#include "tests/support/inlined_expected.h"
#include "tests/support/null_runtime.h"
#include "tests/support/program_runs.h"
#include "tests/support/wasm_command.h"
#include "tests/support/wasm_interpreter.h"

namespace uptier::test::inlined_programs_test {
namespace {

// The targets of indirect calls, by method and site.
class Targets : public jit::InterpretObserver {
 public:
  void target(MethodId m, SiteId site, uint64_t target) override {
    ++seen[{m.index(), site}][target];
  }
  std::map<std::pair<uint32_t, SiteId>, std::map<uint64_t, uint64_t>> seen;
};

// Runs every method in the instrumented copy of its optimized code, from the first call to the
// last.
class OptimizedRuntime final : public NullRuntime, jit::CallResolver, jit::InlineeSource {
 public:
  OptimizedRuntime(const wasm::test::InterpreterRuntime& before, const Targets& targets)
      : before_(before), targets_(targets) {
    helpers_.trap_exit = machine_.routines->trap_exit();
    for (uint32_t i = 0; i < jit::kProbeRoutines; ++i) {
      helpers_.probes[i] = machine_.routines->probe(static_cast<jit::ProbeRoutine>(i));
    }
    machine_.slow = [this](uint32_t m) { return compile(m); };
  }

  Result<MethodId> add_method(Host& host, MethodInfo info) override {
    MethodId id(static_cast<uint32_t>(methods_.size()));
    if (Status s = machine_.stubs->ensure(id); !s) return s.error();
    methods_.emplace_back(host, std::move(info));
    return id;
  }
  const void* entry_address(MethodId m) const override { return machine_.stubs->stub(m); }
  Outcome invoke(MethodId m, std::span<const uint64_t> args) override {
    return machine_.call(entry_address(m), methods_[m.index()].info.signature, args);
  }

  uint32_t methods() const { return static_cast<uint32_t>(methods_.size()); }
  const jit::Code* code(uint32_t m) const { return methods_[m].code.get(); }
  const std::vector<uint64_t>& slab(uint32_t m) const { return methods_[m].slab; }
  const jit::Function& function(uint32_t m) { return known(m).function; }
  std::map<uint32_t, uint64_t> targets(uint32_t m, uint32_t index) const {
    return targets_in(methods_[m].plan, index, methods_[m].slab,
                      [this](MethodId callee) { return entry_address(callee); });
  }
  const jit::ProbePlan& plan(uint32_t m) const { return methods_[m].plan; }

 private:
  struct Counted {
    Counted(Host& h, MethodInfo i) : host(h), info(std::move(i)) {}
    Host& host;
    MethodInfo info;
    std::unique_ptr<jit::Inlinee> known;
    jit::ProbePlan plan;
    std::vector<uint64_t> slab;
    std::unique_ptr<jit::Code> code;
  };

  const jit::Inlinee& known(uint32_t m) {
    Counted& c = methods_[m];
    if (c.known != nullptr) return *c.known;
    FunctionBuilder b(c.info.signature, c.info.name);
    EXPECT_TRUE(c.host.build(MethodId(m), b).ok());
    c.known = std::make_unique<jit::Inlinee>(jit::Inlinee{BuilderAccess::finish(b)});
    EXPECT_TRUE(jit::verify(c.known->function).ok());
    jit::BodyProfile& p = c.known->profile;
    auto blocks = before_.blocks(m);
    p.blocks.assign(blocks.begin(), blocks.end());
    for (const auto& [at, seen] : targets_.seen) {
      if (at.first != m) continue;
      jit::SiteTargets t{at.second, 0, {}};
      for (const auto& [address, count] : seen) {
        uint32_t callee = 0;
        while (jit::Interpreter::address_of(MethodId(callee)) != address) ++callee;
        const MethodInfo& info = methods_[callee].info;
        t.targets.push_back(
            {MethodId(callee), count, entry_address(MethodId(callee)), info.signature, info.name});
        t.total += count;
      }
      std::ranges::sort(t.targets, [](auto& a, auto& b) { return a.count > b.count; });
      p.targets.push_back(std::move(t));
    }
    return *c.known;
  }

  const void* compile(uint32_t m) {
    Counted& c = methods_[m];
    const jit::Inlinee& k = known(m);
    c.plan = jit::plan_probes(k.function, {.flow = FlowMode::kBlocks});
    const jit::SiteProbeRequest sites{.call_targets = true, .top = 64};
    jit::plan_sites(k.function, sites, c.plan);
    c.code = CodeMachine::take(
        jit::compile_optimized({k.function, MethodId(m), helpers_, *this, *machine_.space},
                               {.block_counts = k.profile.blocks,
                                .copy = Copy::kInstrumented,
                                .probes = &c.plan,
                                .inlined_sites = &sites,
                                .targets = k.profile.targets,
                                .inlinees = this}));
    const auto& tables = c.code->tables();
    const auto& inlined = tables.inlined_counts;
    size_t words = inlined.empty() ? c.plan.bytes / 8 : inlined.back().offset / 8 + 1;
    for (const jit::InlinedProbe& p : tables.inlined_probes) words += words_of(p);
    c.slab.resize(words);
    machine_.thread.method(m).optimized_slab = c.slab.data();
    machine_.stubs->set_target(MethodId(m), c.code->entry());
    return c.code->entry();
  }
  jit::CallTarget target(MethodId callee) override {
    return {jit::CallTarget::Kind::kStub, machine_.stubs->stub(callee)};
  }
  const jit::Inlinee* find(MethodId m) override { return &known(m.index()); }

  const wasm::test::InterpreterRuntime& before_;
  const Targets& targets_;
  mutable CodeMachine machine_;
  jit::Helpers helpers_;
  std::deque<Counted> methods_;
};

// Memory bounds are checked in code: the interpreter, which runs the same bodies, has no guard
// pages.
wasm::test::Ended run_on(Runtime& runtime, const std::string& program) {
  wasm::EngineOptions options;
  options.explicit_bounds = true;
  wasm::Engine engine(runtime, options);
  std::string bytes = slurp(wasm_path(program));
  return wasm::test::run_command(engine, {bytes.begin(), bytes.end()}, {program, "1"},
                                 wasm::Bounds::kExplicit);
}

class InlinedPrograms : public testing::TestWithParam<std::string> {};

TEST_P(InlinedPrograms, count_each_body_where_it_is_as_the_interpreter_does) {
  Targets targets;
  wasm::test::InterpreterRuntime before;
  before.observer = &targets;
  auto expected_end = run_on(before, GetParam());
  OptimizedRuntime compiled(before, targets);
  auto end = run_on(compiled, GetParam());
  EXPECT_EQ(end.out, expected_end.out);
  EXPECT_EQ(end.result.exit_code, expected_end.result.exit_code);

  InlinedExpected expected([&](uint32_t m) { return compiled.code(m); },
                           [&](uint32_t m) { return compiled.function(m).loop_count; });
  expected.keeps_values = false;
  wasm::test::InterpreterRuntime oracle;
  oracle.observer = &expected;
  run_on(oracle, GetParam());
  InlinedTally tally;
  size_t reached = 0;  // targets
  auto blocks = [&](MethodId m) { return compiled.function(m.index()).block_sites; };
  auto entry = [&](MethodId m) { return compiled.entry_address(m); };
  auto indirect = [&](uint32_t of, SiteId site) {
    return std::ranges::any_of(compiled.function(of).insts, [&](const jit::Inst& i) {
      return i.op == Opcode::kCallIndirect && i.site == site;
    });
  };
  SiteFacts facts{indirect, nullptr};
  for (uint32_t m = 0; m < compiled.methods(); ++m) {
    if (compiled.code(m) == nullptr) continue;
    EXPECT_EQ("", compare_slab(m, *compiled.code(m), compiled.slab(m), blocks, expected, tally))
        << compiled.function(m).name;
    EXPECT_EQ("",
              compare_probes(m, *compiled.code(m), compiled.slab(m), expected, entry, facts, tally))
        << compiled.function(m).name;
    for (uint32_t i = 0; i < compiled.plan(m).sites.size(); ++i) {
      if (compiled.plan(m).sites[i].offset == jit::ProbePlan::kNone) continue;
      auto want = expected.targets(m, compiled.function(m).block_sites + 1 + i);
      EXPECT_EQ(compiled.targets(m, i), want) << compiled.function(m).name;
      reached += want.size();
    }
  }
  EXPECT_TRUE(GetParam() != "objects" || reached > 3);
  EXPECT_GT(tally.bodies, 5u);
  EXPECT_GT(tally.ran, 20u);
  EXPECT_EQ(tally.unknown_that_ran, 0u);
  std::printf(
      "%s: %zu bodies, %zu blocks of them counted, %zu unknown; %zu ran, %zu of these in "
      "several copies; %llu executions; %zu calls in them counted\n",
      GetParam().c_str(), tally.bodies, tally.words, tally.unknown, tally.ran, tally.copies,
      static_cast<unsigned long long>(tally.counted), tally.of_bodies);
}

INSTANTIATE_TEST_SUITE_P(Examples, InlinedPrograms,
                         testing::Values("objects", "hashtable", "bintrees"),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace uptier::test::inlined_programs_test
