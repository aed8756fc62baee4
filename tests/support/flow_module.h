// A module compiled by the baseline compiler, whose instrumented copies count as a ProbeRequest
// says. Includes everything that exact counts need: events at loop headers, and the walk over the
// frames that a trap unwinds.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "jit/compile/compile.h"
#include "jit/probes/flow_layout.h"
#include "tests/support/code_machine.h"
#include "tests/support/ir_corpus.h"

namespace uptier::test {

class FlowModule : jit::CallResolver {
 public:
  enum class Use {
    kInstrumented,  // every call and every iteration counts
    kToAndFro,      // enters the plain copy and changes copies at each loop header
  };

  FlowModule(CodeMachine& m, const jit::Module& module, const jit::ProbeRequest& request,
             Use use = Use::kInstrumented)
      : machine_(m), module_(module), use_(use) {
    helpers_.loop_slow_plain = reinterpret_cast<const void*>(&loop_slow<Copy::kPlain>);
    helpers_.loop_slow_instrumented =
        reinterpret_cast<const void*>(&loop_slow<Copy::kInstrumented>);
    helpers_.trap_exit = m.routines->trap_exit();
    helpers_.scalable_count64 = m.routines->scalable_count64();
    helpers_.scalable_count32 = m.routines->scalable_count32();
    helpers_.runtime = this;
    m.trapped = [this](uint32_t method, SiteId block, uint64_t frames) {
      traps_[method][block - 1] += frames;
      ++reports_;
    };
    auto count = static_cast<uint32_t>(module.functions.size());
    for (uint32_t i = 0; i < count; ++i) {
      if (!m.stubs->ensure(MethodId(i)).ok()) throw std::runtime_error("no stub");
    }
    for (uint32_t i = 0; i < count; ++i) {
      const jit::Function& f = module.functions[i];
      plans_.push_back(jit::plan_probes(f, request));
      layouts_.emplace_back(f, plans_[i]);
      slabs_.push_back(std::vector<uint64_t>(plans_[i].bytes / 8));
      traps_.push_back(std::vector<uint64_t>(f.block_sites));
      plain_.push_back(compile(f, i, Copy::kPlain));
      instrumented_.push_back(compile(f, i, Copy::kInstrumented));
    }
    for (uint32_t i = 0; i < count; ++i) start(i);
  }
  ~FlowModule() { machine_.trapped = nullptr; }

  CodeMachine::Ran run(MethodId method, const std::vector<uint64_t>& args) {
    return machine_.run(machine_.stubs->stub(method), module_.functions[method.index()].signature(),
                        args);
  }
  uint64_t address_of(MethodId m) const {
    return reinterpret_cast<uint64_t>(machine_.stubs->stub(m));
  }

  profile::FlowCounts counts(
      uint32_t m, jit::FlowLayout::Reading reading = jit::FlowLayout::Reading::kExact) const {
    auto entries =
        static_cast<uint64_t>(AttachedThread::kNever - machine_.thread.method(m).call_countdown);
    if (use_ == Use::kToAndFro) entries = 0;
    return layouts_[m].counts(layouts_[m].read(slabs_[m], reading), traps_[m], entries);
  }
  const jit::ProbePlan& plan(uint32_t m) const { return plans_[m]; }
  const jit::FlowLayout& layout(uint32_t m) const { return layouts_[m]; }
  std::vector<uint64_t>& slab(uint32_t m) { return slabs_[m]; }
  const jit::Code& code(uint32_t m, Copy copy) const {
    return *(copy == Copy::kPlain ? plain_ : instrumented_)[m];
  }
  uint64_t transfers() const { return transfers_; }
  uint64_t reports() const { return reports_; }

 private:
  void start(uint32_t i) {
    const auto& code = use_ == Use::kInstrumented ? instrumented_[i] : plain_[i];
    machine_.stubs->set_target(MethodId(i), code->entry());
    sampler::MethodState& s = machine_.thread.method(i);
    s.call_countdown = AttachedThread::kNever;
    s.slab = slabs_[i].data();
    s.loop_countdown = use_ == Use::kInstrumented ? -AttachedThread::kNever : 1;
  }
  std::unique_ptr<jit::Code> compile(const jit::Function& f, uint32_t i, Copy copy) {
    auto code = jit::compile_baseline({f, MethodId(i), helpers_, *this, *machine_.space},
                                      {.copy = copy, .probes = &plans_[i]});
    if (!code.ok()) throw std::runtime_error(f.name + ": " + code.error().message);
    return std::move(code).value();
  }
  jit::CallTarget target(MethodId callee) override {
    return {jit::CallTarget::Kind::kStub, machine_.stubs->stub(callee)};
  }

  // Sets the countdown so that the same header is due again at its next execution.
  template <Copy kFrom>
  static const void* loop_slow(uint32_t method, uint32_t loop, void*, void* runtime) {
    auto& self = *static_cast<FlowModule*>(runtime);
    ++self.transfers_;
    constexpr Copy kTo = kFrom == Copy::kPlain ? Copy::kInstrumented : Copy::kPlain;
    const jit::ProbePlan& plan = self.plans_[method];
    const auto& words = kTo == Copy::kInstrumented ? plan.loop_enter : plan.loop_leave;
    if (!words.empty()) ++self.slabs_[method][words[loop] / 8];
    self.machine_.thread.method(method).loop_countdown = kTo == Copy::kPlain ? 1 : -1;
    const jit::Code& to = self.code(method, kTo);
    return to.at(to.tables().loops[loop].arrive_offset);
  }

  CodeMachine& machine_;
  const jit::Module& module_;
  Use use_;
  jit::Helpers helpers_;
  std::vector<jit::ProbePlan> plans_;
  std::vector<jit::FlowLayout> layouts_;
  std::vector<std::vector<uint64_t>> slabs_, traps_;
  std::vector<std::unique_ptr<jit::Code>> plain_, instrumented_;
  uint64_t transfers_ = 0, reports_ = 0;
};

// Returns a request for each way to share and store counters.
inline std::vector<jit::ProbeRequest> counter_requests(FlowMode flow) {
  std::vector<jit::ProbeRequest> all;
  for (CounterMode mode : {CounterMode::kPerThread, CounterMode::kInterlocked, CounterMode::kRacing,
                           CounterMode::kScalable, CounterMode::kDual}) {
    for (bool narrow : {false, true}) all.push_back({flow, mode, narrow});
  }
  return all;
}

}  // namespace uptier::test
