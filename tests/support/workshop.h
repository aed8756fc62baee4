// workshop.h: a host that makes and removes methods, for tests of long-running processes.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/runtime_host.h"
#include "uptier/builder.h"

namespace uptier::test {

inline constexpr Type kLong = Type::kI64;
inline const Signature kOne{{kLong}, kLong};
inline const Signature kDispatch{{Type::kRef, kLong}, kLong};
inline const Signature kNext{{kLong}, Type::kRef};

// Overwrites the dead stack below: a conservative stack scan could take left-over words for
// addresses.
[[gnu::noinline]] inline void wipe_stack() {
  volatile char below[32 << 10];
  for (volatile char& c : below) c = 0;
}

// Emits: for (sum = first; x != 0; --x) sum = step(sum, x); return sum. The loop has a loop header.
template <typename Step>
void loop_down(FunctionBuilder& b, Value first_x, Value first, Step step) {
  Variable x = b.declare(kLong), sum = b.declare(kLong);
  b.def(x, first_x);
  b.def(sum, first);
  Block head = b.create_block(), body = b.create_block(), end = b.create_block();
  b.jump(head);
  b.switch_to(head);
  Variable slots[] = {x, sum};
  b.loop_header(0, slots);
  b.branch(b.binary(Opcode::kNe, b.use(x), b.i64(0)), body, end);
  b.seal(body);
  b.switch_to(body);
  b.def(sum, step(b.use(sum), b.use(x)));
  b.def(x, b.binary(Opcode::kSub, b.use(x), b.i64(1)));
  b.jump(head);
  b.seal(head);
  b.seal(end);
  b.switch_to(end);
  b.ret(b.use(sum));
}

// Methods whose bodies are function objects, made and removed by name.
class Workshop : public Host {
 public:
  using Body = std::function<void(FunctionBuilder&)>;

  explicit Workshop(const Options& o, TraceSink* sink = nullptr) {
    Result<std::unique_ptr<Runtime>> r = Runtime::create(o, sink);
    EXPECT_TRUE(r.ok());
    runtime = std::move(*r);
  }
  ~Workshop() override { runtime.reset(); }

  Result<MethodId> try_add(const std::string& name, const Signature& s, Body body) {
    std::lock_guard lock(mutex_);
    MethodInfo info{{1, next_++}, name, s};
    Result<MethodId> m = Error{ErrorCode::kUnsupported, ""};
    m = runtime->add_method(*this, info);
    if (m) bodies_[m->number()] = std::move(body);
    return m;
  }
  // Retries while all slots are full, as a host would: a compilation under way may still refer to
  // removed methods. If the thread has no frames, the left-over words on its stack mean nothing, so
  // it says so with quiescent().
  MethodId add(const std::string& name, const Signature& s, const Body& body) {
    Result<MethodId> m = try_add(name, s, body);
    for (auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
         !m && std::chrono::steady_clock::now() < end;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      CallSite innermost[1];
      if (runtime->walk(innermost) == 0) runtime->quiescent();
      m = try_add(name, s, body);
    }
    if (m) return *m;
    ADD_FAILURE() << m.error().message;
    std::abort();  // compiled code would call a method that does not exist
  }
  // Adds a method that returns its argument plus `n`.
  MethodId adder(uint64_t n) {
    return add("add" + std::to_string(n), kOne, [n](FunctionBuilder& b) {
      b.ret(b.binary(Opcode::kAdd, b.param(0), b.i64(static_cast<int64_t>(n))));
    });
  }
  // Adds a method of several blocks, so that it has counters: it returns max(argument, least).
  MethodId at_least(uint64_t least) {
    return add("least" + std::to_string(least), kOne, [least](FunctionBuilder& b) {
      Value bound = b.i64(static_cast<int64_t>(least));
      Block less = b.create_block(), other = b.create_block();
      b.branch(b.binary(Opcode::kLtU, b.param(0), bound), less, other);
      for (Block block : {less, other}) b.seal(block);
      b.switch_to(less);
      b.ret(bound);
      b.switch_to(other);
      b.ret(b.param(0));
    });
  }
  // Adds a method that calls its first argument with its second.
  MethodId dispatcher() {
    return add("dispatch", kDispatch, [](FunctionBuilder& b) {
      Value args[] = {b.param(1)};
      b.ret(b.call_indirect(b.param(0), kOne, args));
    });
  }
  // Adds a method that calls `callee` with its argument.
  MethodId caller_of(MethodId callee) {
    return add("outer", kOne, [callee](FunctionBuilder& b) {
      Value args[] = {b.param(0)};
      b.ret(b.call(callee, kOne, args));
    });
  }
  void remove(MethodId m) {
    MethodId gone[] = {m};
    runtime->remove_methods(gone);
    wipe_stack();
    std::lock_guard lock(mutex_);
    bodies_.erase(m.number());
  }
  Status build(MethodId m, FunctionBuilder& b) override {
    Body body;
    {
      std::lock_guard lock(mutex_);
      auto at = bodies_.find(m.number());
      if (at == bodies_.end()) return Error{ErrorCode::kNotFound, "it has been removed"};
      body = at->second;
    }
    body(b);
    return {};
  }
  Outcome call(MethodId m, std::vector<uint64_t> args) { return runtime->invoke(m, args); }
  uint64_t address(MethodId m) const {
    return reinterpret_cast<uintptr_t>(runtime->entry_address(m));
  }

  std::unique_ptr<Runtime> runtime;

 private:
  std::mutex mutex_;
  std::map<uint32_t, Body> bodies_;
  uint32_t next_ = 0;
};

// Options with few slots and little code, where all decisions take effect at once.
inline Options small() {
  return options({{"max_methods", "48"},
                  {"removed_kept", "16"},
                  {"code_budget", "262144"},
                  {"slab_budget", "65536"},
                  {"decisions_kept", "100"},
                  {"workers", "0"},
                  {"policy", "always"},
                  {"interval", "1"},
                  {"measure_rates", "off"}});
}

// Options with exactly as many slots as the test fills, where all calls are counted.
inline Options full(const char* places) {
  return options({{"max_methods", places},
                  {"removed_kept", "0"},
                  {"workers", "0"},
                  {"policy", "never"},
                  {"interval", "1"}});
}

// The same, but all decisions take effect at once, and optimized code is sampled.
inline Options optimizing(const char* places) {
  Options o = full(places);
  o.policy = PolicyMode::kAlways;
  o.interval = o.optimized_interval = 16;
  o.overhead_budget = 0;  // no clock may influence what the test asserts
  return o;
}

inline bool takes_another(Workshop& w) {
  return w.try_add("another", kOne, [](FunctionBuilder& b) { b.ret(b.param(0)); }).ok();
}

}  // namespace uptier::test
