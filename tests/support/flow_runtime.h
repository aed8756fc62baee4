// flow_runtime.h: a Runtime that runs every method in its instrumented baseline copy, from the
// first call on, and keeps the counts.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "jit/compile/compile.h"
#include "jit/frontend/builder_access.h"
#include "jit/frontend/verify.h"
#include "jit/probes/flow_layout.h"
#include "tests/support/code_machine.h"
#include "tests/support/null_runtime.h"

namespace uptier::test {

class FlowRuntime final : public NullRuntime, jit::CallResolver {
 public:
  explicit FlowRuntime(const jit::ProbeRequest& request) : request_(request) {
    helpers_.loop_slow_plain = helpers_.loop_slow_instrumented =
        reinterpret_cast<const void*>(&never);
    helpers_.trap_exit = machine_.routines->trap_exit();
    helpers_.scalable_count64 = machine_.routines->scalable_count64();
    helpers_.scalable_count32 = machine_.routines->scalable_count32();
    machine_.slow = [this](uint32_t m) { return compile(m); };
    machine_.trapped = [this](uint32_t m, SiteId block, uint64_t frames) {
      methods_[m].traps[block - 1] += frames;
    };
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
  // Tests whether the method was ever called.
  bool has_code(uint32_t m) const { return methods_[m].code != nullptr; }
  const jit::ProbePlan& plan(uint32_t m) const { return methods_[m].plan; }
  const jit::FlowLayout& layout(uint32_t m) const { return methods_[m].layout; }
  uint32_t blocks(uint32_t m) const { return static_cast<uint32_t>(methods_[m].traps.size()); }
  profile::FlowCounts counts(uint32_t m) const {
    const Counted& c = methods_[m];
    auto calls =
        static_cast<uint64_t>(AttachedThread::kNever - machine_.thread.method(m).call_countdown);
    return c.layout.counts_of(c.slab, c.traps, calls);
  }
  // Returns the number of counter increments that the method's code executed; only for modes whose
  // counters are single words.
  uint64_t increments(uint32_t m) const {
    const Counted& c = methods_[m];
    std::vector<uint64_t> read = c.layout.read(c.slab);
    uint64_t sum = 0;
    for (uint64_t n : read) sum += n;
    return sum;
  }

 private:
  struct Counted {
    Counted(Host& h, MethodInfo i) : host(h), info(std::move(i)) {}
    Host& host;
    MethodInfo info;
    jit::ProbePlan plan;
    jit::FlowLayout layout;
    std::vector<uint64_t> slab, traps;
    std::unique_ptr<jit::Code> code;
  };

  static const void* never(uint32_t, uint32_t, void*, void*) { __builtin_trap(); }

  const void* compile(uint32_t m) {
    Counted& c = methods_[m];
    FunctionBuilder b(c.info.signature, c.info.name);
    EXPECT_TRUE(c.host.build(MethodId(m), b).ok());
    jit::Function f = BuilderAccess::finish(b);
    Status s = jit::verify(f);
    EXPECT_TRUE(s.ok()) << (s.ok() ? "" : s.error().message);
    c.plan = jit::plan_probes(f, request_);
    c.layout = jit::FlowLayout(f, c.plan);
    c.slab.resize(c.plan.bytes / 8);
    c.traps.resize(f.block_sites);
    auto code = jit::compile_baseline({f, MethodId(m), helpers_, *this, *machine_.space},
                                      {.copy = Copy::kInstrumented, .probes = &c.plan});
    c.code = CodeMachine::take(std::move(code));
    machine_.thread.method(m).slab = c.slab.data();
    machine_.thread.method(m).loop_countdown = INT32_MIN;
    machine_.stubs->set_target(MethodId(m), c.code->entry());
    return c.code->entry();
  }
  jit::CallTarget target(MethodId callee) override {
    return {jit::CallTarget::Kind::kStub, machine_.stubs->stub(callee)};
  }

  jit::ProbeRequest request_;
  mutable CodeMachine machine_;
  jit::Helpers helpers_;
  std::deque<Counted> methods_;
};

}  // namespace uptier::test
