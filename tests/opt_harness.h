// Modules compiled whole by the optimizing compiler, and run: for tests that compare it with the
// interpreter.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "jit/compile.h"
#include "tests/code_machine.h"
#include "tests/ir_corpus.h"
#include "tests/random_ir.h"

namespace uptier::test {

// What host functions of the corpus raise, in a thread without a runtime.
inline void raise_in_context(TrapCode code) {
  sampler::current_context()->pending_trap = static_cast<uint32_t>(code);
}

// Every function of a module as optimized code behind its stub.
class OptimizedModule : private jit::CallResolver {
 public:
  // `counts(method)` gives block counts; null: no profile.
  using Counts = std::function<std::vector<uint64_t>(const jit::Function&)>;

  // Instrumented copies count in slabs of their own, block k in word k - 1.
  OptimizedModule(CodeMachine& machine, const jit::Module& module, const Counts& counts = nullptr,
                  Copy copy = Copy::kPlain)
      : OptimizedModule(
            machine, module, nullptr,
            [&](const jit::Function& f) {
              return jit::BodyProfile{counts ? counts(f) : std::vector<uint64_t>{}, {}};
            },
            copy) {}

  // The same with bodies inlined that `inlinees` knows; `profiles(method)` as for Counts.
  using Profiles = std::function<jit::BodyProfile(const jit::Function&)>;
  OptimizedModule(CodeMachine& machine, const jit::Module& module, jit::InlineeSource& inlinees,
                  const Profiles& profiles, Copy copy)
      : OptimizedModule(machine, module, &inlinees, profiles, copy) {}

  const void* entry(MethodId m) const { return machine_.stubs->stub(m); }
  const std::vector<std::unique_ptr<jit::Code>>& codes() const { return codes_; }
  // By method; of instrumented copies.
  const std::vector<std::vector<uint64_t>>& slabs() const { return slabs_; }
  jit::CallResolver& resolver() { return *this; }
  const jit::Helpers& helpers() const { return helpers_; }

 private:
  OptimizedModule(CodeMachine& machine, const jit::Module& module, jit::InlineeSource* inlinees,
                  const Profiles& profiles, Copy copy)
      : machine_(machine) {
    helpers_.trap_exit = machine.routines->trap_exit();
    for (uint32_t i = 0; i < module.functions.size(); ++i) {
      EXPECT_TRUE(machine.stubs->ensure(MethodId(i)).ok());
    }
    for (uint32_t i = 0; i < module.functions.size(); ++i) {
      const jit::Function& f = module.functions[i];
      jit::BodyProfile known = profiles(f);
      auto code = jit::compile_optimized({f, MethodId(i), helpers_, *this, *machine.space},
                                         {.block_counts = known.blocks,
                                          .copy = copy,
                                          .targets = known.targets,
                                          .inlinees = inlinees});
      EXPECT_TRUE(code.ok()) << f.name << ": " << code.error().message;
      if (!code.ok()) continue;
      machine.stubs->set_target(MethodId(i), (*code)->entry());
      codes_.push_back(std::move(*code));
      if (copy == Copy::kPlain) continue;
      slabs_.emplace_back(f.block_sites);
      machine.thread.method(i).optimized_slab = slabs_.back().data();
    }
  }

  jit::CallTarget target(MethodId callee) override {
    return {jit::CallTarget::Kind::kStub, machine_.stubs->stub(callee)};
  }

  CodeMachine& machine_;
  jit::Helpers helpers_;
  std::vector<std::unique_ptr<jit::Code>> codes_;
  std::vector<std::vector<uint64_t>> slabs_;
};

}  // namespace uptier::test
