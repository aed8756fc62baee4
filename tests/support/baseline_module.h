// A module compiled by the baseline compiler, in one copy or in both, with stubs between its
// functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jit/compile/compile.h"
#include "tests/support/code_machine.h"
#include "tests/support/ir_corpus.h"

namespace uptier::test {

class BaselineModule : jit::CallResolver {
 public:
  enum class Use {
    kPlain,         // no burst is ever due
    kInstrumented,  // every call and every iteration counts
    kToAndFro,      // enters the plain copy and changes copies at each loop header
  };

  // `plan` gives the probe plan of the instrumented copies; without it, they count their blocks.
  using MakePlan = std::function<jit::ProbePlan(const jit::Function&)>;

  BaselineModule(CodeMachine& m, const jit::Module& module, Use use, const MakePlan& plan = {})
      : machine_(m), module_(module), use_(use) {
    helpers_.loop_slow_plain =
        reinterpret_cast<const void*>(&BaselineModule::loop_slow<Copy::kPlain>);
    helpers_.loop_slow_instrumented =
        reinterpret_cast<const void*>(&BaselineModule::loop_slow<Copy::kInstrumented>);
    helpers_.trap_exit = m.routines->trap_exit();
    helpers_.runtime = this;
    for (uint32_t i = 0; i < jit::kProbeRoutines; ++i) {
      helpers_.probes[i] = m.routines->probe(static_cast<jit::ProbeRoutine>(i));
    }
    if (plan) {
      for (const jit::Function& f : module.functions) plans_.push_back(plan(f));
    }
    auto count = static_cast<uint32_t>(module.functions.size());
    for (uint32_t i = 0; i < count; ++i) {
      if (!m.stubs->ensure(MethodId(i)).ok()) throw std::runtime_error("no stub");
    }
    for (uint32_t i = 0; i < count; ++i) {
      const jit::Function& f = module.functions[i];
      slabs_.push_back(std::vector<uint64_t>(plan ? plans_[i].bytes / 8 : uint64_t{f.block_sites}));
      plain_.push_back(compile(f, i, Copy::kPlain));
      instrumented_.push_back(compile(f, i, Copy::kInstrumented));
    }
    for (uint32_t i = 0; i < count; ++i) {
      const auto& code = use == Use::kInstrumented ? instrumented_[i] : plain_[i];
      m.stubs->set_target(MethodId(i), code->entry());
      sampler::MethodState& s = m.thread.method(i);
      s.call_countdown = AttachedThread::kNever;
      s.slab = slabs_[i].data();
      s.loop_countdown = use == Use::kPlain          ? AttachedThread::kNever
                         : use == Use::kInstrumented ? -AttachedThread::kNever
                                                     : 1;
    }
  }

  CodeMachine::Ran run(MethodId method, const std::vector<uint64_t>& args) {
    return machine_.run(machine_.stubs->stub(method), module_.functions[method.index()].signature(),
                        args);
  }
  uint64_t address_of(MethodId m) const {
    return reinterpret_cast<uint64_t>(machine_.stubs->stub(m));
  }
  const std::vector<uint64_t>& counts(uint32_t method) const { return slabs_[method]; }
  const jit::ProbePlan& plan(uint32_t method) const { return plans_[method]; }
  std::vector<uint64_t>& slab(uint32_t method) { return slabs_[method]; }
  const jit::Code& code(uint32_t method, Copy copy) const {
    return *(copy == Copy::kPlain ? plain_ : instrumented_)[method];
  }
  uint64_t transfers() const { return transfers_; }

 private:
  std::unique_ptr<jit::Code> compile(const jit::Function& f, uint32_t i, Copy copy) {
    jit::BaselineRequest request{.copy = copy, .probes = plans_.empty() ? nullptr : &plans_[i]};
    auto code = jit::compile_baseline({f, MethodId(i), helpers_, *this, *machine_.space}, request);
    if (!code.ok()) throw std::runtime_error(f.name + ": " + code.error().message);
    return std::move(code).value();
  }
  jit::CallTarget target(MethodId callee) override {
    return {jit::CallTarget::Kind::kStub, machine_.stubs->stub(callee)};
  }

  // Sets the countdown so that the same header is due again at its next execution.
  template <Copy kFrom>
  static const void* loop_slow(uint32_t method, uint32_t loop, void*, void* runtime) {
    auto& self = *static_cast<BaselineModule*>(runtime);
    ++self.transfers_;
    constexpr Copy kTo = kFrom == Copy::kPlain ? Copy::kInstrumented : Copy::kPlain;
    self.machine_.thread.method(method).loop_countdown = kTo == Copy::kPlain ? 1 : -1;
    const jit::Code& to = self.code(method, kTo);
    return to.at(to.tables().loops[loop].arrive_offset);
  }

  CodeMachine& machine_;
  const jit::Module& module_;
  Use use_;
  jit::Helpers helpers_;
  std::vector<jit::ProbePlan> plans_;
  std::vector<std::vector<uint64_t>> slabs_;
  std::vector<std::unique_ptr<jit::Code>> plain_, instrumented_;
  uint64_t transfers_ = 0;
};

}  // namespace uptier::test
