// Code: with any profile, optimized code gives the reference interpreter's answers, with the same
// memory and the same calls of host functions. Its registers hold the right values, also in
// versions that are entered at loops.
#include <map>
#include <memory>

#include "jit/compile/compile.h"
#include "jit/ir/print.h"
#include "jit/opt/optimize.h"
#include "jit/opt/osr_entry.h"
#include "jit/probes/inlined_counts.h"
#include "jit/probes/plan_sites.h"
#include "jit/regalloc/allocation.h"
#include "jit/x64/lower.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/code_machine.h"
#include "tests/support/compare.h"
#include "tests/support/indirect_calls.h"
#include "tests/support/random_profiles.h"

namespace uptier::fuzz {
namespace {

constexpr int kCalls = 4;  // of each function

// Offers every function of a module for inlining, with one profile each.
class Bodies final : public jit::InlineeSource {
 public:
  using Profiles = std::function<jit::BodyProfile(const jit::Function&)>;

  Bodies(const jit::Module& module, const Profiles& profiles) {
    for (const jit::Function& f : module.functions) known_.push_back({f, profiles(f)});
  }
  const jit::Inlinee* find(MethodId m) override { return &known_[m.index()]; }

 private:
  std::vector<jit::Inlinee> known_;
};

struct How {
  bool inlines = true;
  Copy copy = Copy::kPlain;
  bool observes = false;      // has probes, in an instrumented copy
  bool knows_itself = false;  // calls itself directly, not through its stub
};

// A module as machine code that is called through stubs.
class Compiled final : private jit::CallResolver {
 public:
  Compiled(test::CodeMachine& machine, const jit::Module& module, Bodies& bodies, const How& how)
      : machine_(machine), how_(how) {
    helpers_.trap_exit = machine.routines->trap_exit();
    for (uint32_t i = 0; i < jit::kProbeRoutines; ++i) {
      helpers_.probes[i] = machine.routines->probe(static_cast<jit::ProbeRoutine>(i));
    }
    for (uint32_t m = 0; m < module.functions.size(); ++m) {
      const jit::Function& f = module.functions[m];
      const jit::BodyProfile& p = bodies.find(MethodId(m))->profile;
      self_ = MethodId(m);
      jit::ProbePlan plan = jit::plan_probes(f, {.flow = FlowMode::kBlocks});
      jit::SiteProbeRequest sites{.call_targets = true, .host_probes = true};
      if (how.observes) jit::plan_sites(f, sites, plan);
      auto code = jit::compile_optimized({f, MethodId(m), helpers_, *this, *machine.space},
                                         {.block_counts = p.blocks,
                                          .copy = how.copy,
                                          .probes = how.observes ? &plan : nullptr,
                                          .inlined_sites = how.observes ? &sites : nullptr,
                                          .targets = p.targets,
                                          .inlinees = how.inlines ? &bodies : nullptr});
      UPTIER_FUZZ_CHECK(code.ok());
      machine.stubs->set_target(MethodId(m), (*code)->entry());
      const auto& inlined = (*code)->tables().inlined_counts;
      size_t words = inlined.empty() ? f.block_sites : inlined.back().offset / 8 + 1;
      words = std::max<size_t>(words, plan.bytes / 8);
      for (const jit::InlinedProbe& p : (*code)->tables().inlined_probes) words += words_of(p);
      slabs_.emplace_back(words);
      if (how.copy != Copy::kPlain) machine.thread.method(m).optimized_slab = slabs_.back().data();
      codes_.push_back(std::move(*code));
    }
  }

 private:
  jit::CallTarget target(MethodId callee) override {
    if (how_.knows_itself && callee == self_) return {jit::CallTarget::Kind::kSelf, nullptr};
    return {jit::CallTarget::Kind::kStub, machine_.stubs->stub(callee)};
  }

  test::CodeMachine& machine_;
  const How& how_;
  MethodId self_;
  jit::Helpers helpers_;
  std::vector<std::unique_ptr<jit::Code>> codes_;
  std::vector<std::vector<uint64_t>> slabs_;
};

// Checks, without running the code, that registers and slots hold the values that are read from
// them.
void check_registers(const jit::Function& built, const jit::BodyProfile& profile,
                     jit::InlineeSource* bodies, test::Random& random) {
  jit::Function f = built;
  std::vector<int32_t> slots;
  bool osr = built.loop_count != 0;
  if (osr) {
    LoopId loop(static_cast<uint32_t>(random.below(built.loop_count)));
    jit::Liveness live = jit::compute_liveness(built);
    auto entered =
        jit::enter_at_loop(built, loop, live, jit::layout_frame(built, live), profile.blocks);
    UPTIER_FUZZ_CHECK(entered.ok());
    f = std::move(entered->function);
    slots = std::move(entered->slots);
  }
  jit::Optimized o =
      jit::optimize(f, {.counts = profile.blocks, .targets = profile.targets, .source = bodies});
  auto machine =
      jit::x64::lower({f, o.loops, o.frequencies, osr, slots, random.chance(80), {}, {}, {}});
  jit::machine::Allocation allocation = jit::machine::allocate_registers(machine);
  std::string problem = jit::machine::check_allocation(machine, allocation);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s%s\n", jit::to_text(built).c_str(), problem.c_str());
  }
  UPTIER_FUZZ_CHECK(problem.empty());
}

void check(const jit::Module& module, uint32_t m, const std::string& difference) {
  if (difference.empty()) return;
  std::fprintf(stderr, "%s%s: %s\n", jit::to_text(module).c_str(), module.functions[m].name.c_str(),
               difference.c_str());
  UPTIER_FUZZ_CHECK(difference.empty());
}

void compare(const jit::Module& built, test::Random& random) {
  static test::Scratch scratch;
  test::CodeMachine machine;
  jit::Module module = built;
  for (uint32_t m = 0; m < built.functions.size(); ++m) {
    UPTIER_FUZZ_CHECK(machine.stubs->ensure(MethodId(m)).ok());
  }
  auto stub = [&](MethodId m) { return machine.stubs->stub(m); };
  unsigned indirect = random.chance(30) ? 40 : 0;
  for (jit::Function& f : module.functions) {
    make_calls_indirect(f, random, indirect, stub);
    test::place_addresses(f, module.functions.size(), stub);
    if (random.chance(50)) test::note_any_turns(f, random);
  }
  bool counts = random.chance(85);
  Bodies bodies(module, [&](const jit::Function& f) {
    jit::BodyProfile p;
    if (counts) p.blocks = test::any_counts(f, random);
    p.targets = test::any_targets(f, module, random, stub);
    return p;
  });
  How how{.inlines = random.chance(70),
          .copy = random.chance(80) ? Copy::kPlain : Copy::kInstrumented,
          .observes = random.chance(60),
          .knows_itself = random.chance(50)};
  how.observes &= how.copy != Copy::kPlain;
  Compiled code(machine, module, bodies, how);
  jit::Interpreter oracle(built, interpret_options(scratch));
  for (uint32_t m = 0; m < built.functions.size(); ++m) {
    check_registers(module.functions[m], bodies.find(MethodId(m))->profile,
                    how.inlines ? &bodies : nullptr, random);
    const Signature& s = built.functions[m].signature();
    for (int n = 0; n < kCalls; ++n) {
      std::vector<uint64_t> args = random_arguments(s, scratch, random);
      test::Expected want = test::expected_of(oracle, MethodId(m), args, scratch);
      check(built, m, test::difference(want, s.result, scratch, [&] {
              return machine.run(stub(MethodId(m)), s, args);
            }));
    }
  }
}

}  // namespace

std::vector<std::string> seeds() { return {"a program is a number"}; }

void feed(const std::string& input) {
  uint64_t seed = 0xcbf29ce484222325;
  for (char c : input) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  test::corpus_raise = test::raise_in_context;
  test::Random random(seed);
  bool large = random.chance(3);
  test::RandomOptions options{.functions = 1 + static_cast<int>(random.below(6)),
                              .statements = 5 + static_cast<int>(random.below(large ? 600 : 60)),
                              .variables = 2 + static_cast<int>(random.below(large ? 80 : 20)),
                              .depth = 1 + static_cast<int>(random.below(large ? 7 : 4)),
                              .traps = random.chance(60),
                              .hosts = random.chance(60),
                              .guards = random.chance(40),
                              .odd = random.chance(60),
                              .counts = random.chance(20),
                              .wide = random.chance(70)};
  compare(test::random_module(random.next(), options), random);
}

}  // namespace uptier::fuzz
