// wasm_interpreter.h: a Runtime that compiles nothing. It runs every method in the reference
// interpreter, which separates faults of the engine's descriptions from faults of the compilers.
//
// Memories must have explicit bounds checks: the interpreter has no guard pages.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "jit/frontend/builder_access.h"
#include "jit/frontend/interpret.h"
#include "jit/frontend/verify.h"
#include "sampler/context.h"
#include "tests/support/null_runtime.h"

namespace uptier::wasm::test {

class InterpreterRuntime final : public uptier::test::NullRuntime {
 public:
  // Creates a real runtime too, for the thread context that Runtime::raise writes to.
  InterpreterRuntime() {
    auto r = Runtime::create({});
    EXPECT_TRUE(r.ok());
    behind_ = std::move(*r);
    scope_ = std::make_unique<ThreadScope>(*behind_);
  }
  ~InterpreterRuntime() override { scope_.reset(); }

  Result<MethodId> add_method(Host& host, MethodInfo info) override {
    methods_.push_back({&host, std::move(info)});
    return MethodId(static_cast<uint32_t>(methods_.size() - 1));
  }
  const void* entry_address(MethodId m) const override {
    return reinterpret_cast<const void*>(jit::Interpreter::address_of(m));
  }

  Outcome invoke(MethodId m, std::span<const uint64_t> args) override {
    build_new();
    jit::InterpretOptions options;
    options.step_limit = uint64_t{1} << 40;
    options.depth_limit = 3000;
    options.memory = {{4096, (uint64_t{1} << 47) - 4096, true}};
    options.call_host = call_host;
    options.observer = observer;
    jit::Interpreter interpreter(module_, options);
    jit::InterpretOutcome r = interpreter.run(m, args);
    add_counts(interpreter);
    EXPECT_NE(r.kind, jit::InterpretOutcome::Kind::kStopped) << r.why;
    if (r.kind == jit::InterpretOutcome::Kind::kReturned) return {r.bits, {}};
    uint64_t detail = sampler::current_context()->trap_detail;
    return {0, {r.trap, r.method, r.location, detail}};
  }

  jit::InterpretObserver* observer = nullptr;

  // Return the executions so far, by block site and by edge number, with number 1 at index 0; empty
  // if the method was never entered.
  std::span<const uint64_t> blocks(uint32_t m) const { return counts_[m].blocks; }
  std::span<const uint64_t> edges(uint32_t m) const { return counts_[m].edges; }

 private:
  struct Registered {
    Host* host;
    MethodInfo info;
  };

  struct Counts {
    std::vector<uint64_t> blocks, edges;
  };

  static void add(std::vector<uint64_t>& to, std::span<const uint64_t> from) {
    to.resize(std::max(to.size(), from.size()));
    for (size_t i = 0; i < from.size(); ++i) to[i] += from[i];
  }
  // Resizes: nested calls may have added methods.
  void add_counts(const jit::Interpreter& interpreter) {
    counts_.resize(methods_.size());
    for (uint32_t m = 0; m < interpreter.methods(); ++m) {
      auto sites = interpreter.site_counts(MethodId(m));
      size_t blocks = std::min<size_t>(sites.size(), module_.functions[m].block_sites);
      add(counts_[m].blocks, sites.first(blocks));
      add(counts_[m].edges, interpreter.edge_counts(MethodId(m)));
    }
  }

  void build_new() {
    for (size_t i = module_.functions.size(); i < methods_.size(); ++i) {
      FunctionBuilder b(methods_[i].info.signature, methods_[i].info.name);
      EXPECT_TRUE(methods_[i].host->build(MethodId(static_cast<uint32_t>(i)), b).ok());
      module_.functions.push_back(BuilderAccess::finish(b));
      Status s = jit::verify(module_.functions.back());
      EXPECT_TRUE(s.ok()) << (s.ok() ? "" : s.error().message);
    }
  }

  // All helpers of the engine take integers and pointers, at most five.
  static jit::OutsideResult call_host(const jit::HostCallee& callee,
                                      std::span<const uint64_t> args) {
    uint64_t a[6] = {};
    std::copy(args.begin(), args.end(), a);
    using Helper = uint64_t(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
    auto* helper = reinterpret_cast<Helper*>(const_cast<void*>(callee.address));
    // Acts like an invoke: a trap that is raised with no activation below would be dropped.
    sampler::ThreadContext& context = *sampler::current_context();
    sampler::Activation here{context.activation, 0};
    context.activation = &here;
    uint64_t bits = helper(a[0], a[1], a[2], a[3], a[4], a[5]);
    context.activation = here.outer;
    auto trap = static_cast<TrapCode>(context.pending_trap);
    context.pending_trap = 0;
    return {bits, trap};
  }

  std::unique_ptr<Runtime> behind_;
  std::unique_ptr<ThreadScope> scope_;
  std::deque<Registered> methods_;
  std::vector<Counts> counts_;
  jit::Module module_;
};

}  // namespace uptier::wasm::test
