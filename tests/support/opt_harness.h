// Compiles whole modules with the optimizing compiler and runs them, to compare it with the
// interpreter.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "jit/compile/compile.h"
#include "jit/probes/inlined_counts.h"
#include "jit/probes/plan_sites.h"
#include "tests/support/code_machine.h"
#include "tests/support/ir_corpus.h"
#include "tests/support/random_ir.h"

namespace uptier::test {

// Returns the number of words that an instrumented copy without a plan counts in: block k in word k
// - 1, then the words of inlined bodies.
inline size_t slab_words(const jit::Function& f, const jit::Code& code) {
  const std::vector<jit::InlinedCount>& inlined = code.tables().inlined_counts;
  const std::vector<jit::InlinedProbe>& probes = code.tables().inlined_probes;
  if (!probes.empty()) return probes.back().offset / 8 + jit::words_of(probes.back());
  return inlined.empty() ? f.block_sites : inlined.back().offset / 8 + 1;
}

// Every function of a module as optimized code, called through its stub.
class OptimizedModule : private jit::CallResolver {
 public:
  // `counts(method)` returns block counts; null: there is no profile.
  using Counts = std::function<std::vector<uint64_t>(const jit::Function&)>;

  // Each instrumented copy counts in its own slab. `top` is the number of entries in the tables of
  // indirect calls and of probes; with 0 they observe nothing.
  OptimizedModule(CodeMachine& machine, const jit::Module& module, const Counts& counts = nullptr,
                  Copy copy = Copy::kPlain, uint32_t top = 0)
      : OptimizedModule(
            machine, module, nullptr,
            [&](const jit::Function& f) {
              return jit::BodyProfile{counts ? counts(f) : std::vector<uint64_t>{}, {}};
            },
            copy, top) {}

  // The same, but inlines the bodies that `inlinees` offers; `profiles(method)` is like Counts.
  using Profiles = std::function<jit::BodyProfile(const jit::Function&)>;
  OptimizedModule(CodeMachine& machine, const jit::Module& module, jit::InlineeSource& inlinees,
                  const Profiles& profiles, Copy copy, uint32_t top = 0)
      : OptimizedModule(machine, module, &inlinees, profiles, copy, top) {}

  // The words that plain code tallies in. A test sets it before it creates modules; null: plain
  // code does not count.
  static inline jit::TallySource* tallies = nullptr;

  const void* entry(MethodId m) const { return machine_.stubs->stub(m); }
  const std::vector<std::unique_ptr<jit::Code>>& codes() const { return codes_; }
  // By method; for instrumented copies.
  const std::vector<std::vector<uint64_t>>& slabs() const { return slabs_; }
  const std::vector<jit::ProbePlan>& plans() const { return plans_; }
  jit::CallResolver& resolver() { return *this; }
  const jit::Helpers& helpers() const { return helpers_; }

 private:
  OptimizedModule(CodeMachine& machine, const jit::Module& module, jit::InlineeSource* inlinees,
                  const Profiles& profiles, Copy copy, uint32_t top = 0)
      : machine_(machine) {
    helpers_.trap_exit = machine.routines->trap_exit();
    for (uint32_t i = 0; i < jit::kProbeRoutines; ++i) {
      helpers_.probes[i] = machine.routines->probe(static_cast<jit::ProbeRoutine>(i));
    }
    for (uint32_t i = 0; i < module.functions.size(); ++i) {
      EXPECT_TRUE(machine.stubs->ensure(MethodId(i)).ok());
    }
    for (uint32_t i = 0; i < module.functions.size(); ++i) {
      const jit::Function& f = module.functions[i];
      jit::BodyProfile known = profiles(f);
      jit::ProbePlan plan = jit::plan_probes(f, {.flow = FlowMode::kBlocks});
      jit::SiteProbeRequest sites{
          .call_targets = true, .host_probes = true, .top = top, .turns = false};
      if (top != 0) jit::plan_sites(f, sites, plan);
      auto code = jit::compile_optimized({f, MethodId(i), helpers_, *this, *machine.space},
                                         {.block_counts = known.blocks,
                                          .copy = copy,
                                          .probes = top != 0 ? &plan : nullptr,
                                          .inlined_sites = top != 0 ? &sites : nullptr,
                                          .targets = known.targets,
                                          .inlinees = inlinees,
                                          .tallies = {tallies, true}});
      EXPECT_TRUE(code.ok()) << f.name << ": " << code.error().message;
      if (!code.ok()) continue;
      machine.stubs->set_target(MethodId(i), (*code)->entry());
      codes_.push_back(std::move(*code));
      if (copy == Copy::kPlain) continue;
      slabs_.emplace_back(std::max<size_t>(plan.bytes / 8, slab_words(f, *codes_.back())));
      plans_.push_back(std::move(plan));
      machine.thread.method(i).optimized_slab = slabs_.back().data();
    }
  }

  // Every other callee is counted in the caller.
  jit::CallTarget target(MethodId callee) override {
    using Kind = jit::CallTarget::Kind;
    const jit::StubTable& stubs = *machine_.stubs;
    if (callee.index() % 2 != 0) return {Kind::kStub, stubs.stub(callee)};
    return {Kind::kCounted, stubs.cell(callee), stubs.stub(callee), stubs.tail(callee)};
  }

  CodeMachine& machine_;
  jit::Helpers helpers_;
  std::vector<std::unique_ptr<jit::Code>> codes_;
  std::vector<std::vector<uint64_t>> slabs_;
  std::vector<jit::ProbePlan> plans_;
};

// Runs a function in compiled code and in the interpreter. Returns whether both give the same
// answer and leave the same memory; sets `traps` to whether they trapped.
inline bool answers_alike(CodeMachine& machine, const OptimizedModule& code,
                          jit::Interpreter& oracle, MethodId f, const Signature& s,
                          const std::vector<uint64_t>& args, Scratch& scratch, bool& traps) {
  scratch.fill();
  Answer want = interpret(oracle, f, args);
  std::string bytes = scratch.bytes();
  scratch.fill();
  auto got = machine.run(code.entry(f), s, args);
  traps = want.trap != TrapCode::kNone;
  return got.trap == want.trap && bytes == scratch.bytes() &&
         (traps || same_value(s.result, got.bits, want.bits));
}

}  // namespace uptier::test
