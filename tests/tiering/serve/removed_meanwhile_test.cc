// Methods that are removed while code that speculates on them is compiled.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "tests/support/runtime_host.h"
#include "uptier/builder.h"

namespace uptier::test::removed_meanwhile_test {
namespace {

constexpr Type kLong = Type::kI64;
const Signature kOne{{kLong}, kLong};
const Signature kDispatch{{Type::kRef, kLong}, kLong};
constexpr int64_t kNever = 0x123456789;

// Returns `result`, after `count` instructions if `x` is kNever. They make compilation slow, and
// keep the body from being inlined.
void return_at_length(FunctionBuilder& b, Value x, Value result, int count) {
  Block length = b.create_block(), end = b.create_block();
  Variable v = b.declare(kLong);
  b.def(v, result);
  b.branch(b.binary(Opcode::kEq, x, b.i64(kNever)), length, end);
  b.seal(length);
  b.switch_to(length);
  Value c = x;
  for (int i = 0; i < count; ++i) {
    c = b.binary(i % 3 == 0 ? Opcode::kXor : Opcode::kMul, c, i % 2 == 0 ? result : b.i64(i));
  }
  b.def(v, c);
  b.jump(end);
  b.seal(end);
  b.switch_to(end);
  b.ret(b.use(v));
}

class Bench : public Host {
 public:
  using Body = std::function<void(FunctionBuilder&)>;

  Bench() {
    Result<std::unique_ptr<Runtime>> r = Runtime::create(options({{"max_methods", "32"},
                                                                  {"removed_kept", "0"},
                                                                  {"workers", "1"},
                                                                  {"policy", "always"},
                                                                  {"interval", "1"},
                                                                  {"targets", "1"},
                                                                  {"deopt_cold", "off"},
                                                                  {"measure_rates", "off"}}));
    EXPECT_TRUE(r.ok());
    runtime = std::move(*r);
  }
  ~Bench() override { runtime.reset(); }

  MethodId add(const std::string& name, const Signature& s, Body body) {
    std::lock_guard lock(mutex_);
    Result<MethodId> m = runtime->add_method(*this, {{1, next_++}, name, s});
    if (m.ok()) bodies_[m->number()] = std::move(body);
    return m.ok() ? *m : MethodId::none();
  }
  MethodId adder(int64_t n) {
    return add("add" + std::to_string(n), kOne, [n](FunctionBuilder& b) {
      return_at_length(b, b.param(0), b.binary(Opcode::kAdd, b.param(0), b.i64(n)), 1200);
    });
  }
  void remove(MethodId m) {
    MethodId gone[] = {m};
    runtime->remove_methods(gone);
  }
  uint64_t address(MethodId m) const {
    return reinterpret_cast<uintptr_t>(runtime->entry_address(m));
  }
  Status build(MethodId m, FunctionBuilder& b) override {
    Body body;
    {
      std::lock_guard lock(mutex_);
      body = bodies_.at(m.number());
    }
    body(b);
    bool asked = std::this_thread::get_id() != made_by_;
    if (asked && m.number() == watched.load()) seen = true;
    return {};
  }

  std::unique_ptr<Runtime> runtime;
  std::atomic<uint32_t> watched = MethodId::none().number();  // the method that is watched
  std::atomic<bool> seen = false;                             // the worker has begun to compile it

 private:
  std::mutex mutex_;
  std::map<uint32_t, Body> bodies_;
  uint32_t next_ = 0;
  std::thread::id made_by_ = std::this_thread::get_id();
};

// The guess of `outer` is removed while `outer` is compiled. Its code compares the stub's address,
// and the call after the comparison must not be made any more. So the slot must wait until `outer`
// is freed.
TEST(RemovedMeanwhile, a_guess_is_not_taken_for_the_method_that_comes_after_it) {
  for (int delay_ms = 0; delay_ms < 24; delay_ms += 3) {
    Bench w;
    ThreadScope scope(*w.runtime);
    MethodId dispatch = w.add("dispatch", kDispatch, [](FunctionBuilder& b) {
      Value args[] = {b.param(1)};
      b.ret(b.call_indirect(b.param(0), kOne, args));
    });
    MethodId guess = w.adder(1);
    for (int i = 0; i < 100; ++i) w.runtime->invoke(dispatch, {{w.address(guess), 1}});
    MethodId outer = w.add("outer", kDispatch, [=](FunctionBuilder& b) {
      Value args[] = {b.param(0), b.param(1)};
      return_at_length(b, b.param(1), b.call(dispatch, kDispatch, args), 20'000);
    });
    w.watched = outer.number();
    auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!w.seen && std::chrono::steady_clock::now() < end) {
      ASSERT_EQ(w.runtime->invoke(outer, {{w.address(guess), 2}}).bits, 3u);
    }
    ASSERT_TRUE(w.seen);
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    w.remove(guess);
    w.runtime->flush();
    bool used = false;
    for (uint64_t n = 1000; n < 1400 && !used; ++n) {
      MethodId m = w.adder(static_cast<int64_t>(n));
      if (!m.valid()) continue;  // the worker's look keeps all slots
      for (int i = 0; i < 400; ++i) w.runtime->invoke(dispatch, {{w.address(m), 3}});
      used = m.index() == guess.index();
      if (used) {
        Outcome o = w.runtime->invoke(outer, {{w.address(m), 3}});
        ASSERT_EQ(o.trap.code, TrapCode::kNone);
        ASSERT_EQ(o.bits, n + 3);
      }
      w.remove(m);
    }
  }
}

}  // namespace
}  // namespace uptier::test::removed_meanwhile_test
