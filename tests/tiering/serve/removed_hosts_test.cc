// A host may be destroyed once its methods are removed: it is not called any more, and has got back
// everything it made, whatever is being compiled meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/support/runtime_host.h"
#include "uptier/builder.h"

namespace uptier::test::removed_hosts_test {
namespace {

const Signature kOne{{Type::kI64}, Type::kI64};

void remove(Runtime& r, MethodId m) {
  MethodId gone[] = {m};
  r.remove_methods(gone);
}

// ---- A host's own code --------------------------------------------------------------------------

uint64_t same(uint64_t x) { return x; }

// While it compiles better code, the method is removed.
class SlowCompiler : public Host {
 public:
  Result<HostCode> compile(const Plan& plan, const MethodProfile&) override {
    ++made;
    if (plan.tier == Tier::kOptimized) {
      compiles = true;
      while (runtime->entry_address(plan.method) != nullptr) std::this_thread::yield();
    }
    return HostCode{reinterpret_cast<const void*>(same), 0};
  }
  void release(MethodId, const HostCode&) noexcept override { ++given_back; }

  Runtime* runtime = nullptr;
  std::atomic<bool> compiles = false;
  std::atomic<int> made = 0, given_back = 0;
};

TEST(RemovedHosts, code_that_comes_too_late_is_given_back) {
  SlowCompiler host;
  auto r = Runtime::create(options({{"policy", "always"}, {"flush_first", "4"}}));
  ASSERT_TRUE(r.ok());
  host.runtime = r->get();
  MethodInfo info{{1, 1}, "own", kOne};
  info.own_code = true;
  Result<MethodId> m = (*r)->add_method(host, info);
  ASSERT_TRUE(m.ok());
  {
    ThreadScope scope(**r);
    while (!host.compiles) ASSERT_EQ((*r)->invoke(*m, {{42}}).bits, 42u);
  }
  remove(**r, *m);
  EXPECT_EQ(host.made, 2);
  EXPECT_EQ(host.given_back, 2);
}

// ---- Hosts of inlined methods -----------------------------------------------------------------

class Scoped : public Host {
 public:
  using Body = std::function<void(FunctionBuilder&)>;
  explicit Scoped(Body body) : body_(std::move(body)) {}

  void add_to(Runtime& r, uint32_t function) {
    Result<MethodId> m = r.add_method(*this, {{1, function}, "f" + std::to_string(function), kOne});
    EXPECT_TRUE(m.ok());
    method = *m;
  }
  Status build(MethodId, FunctionBuilder& b) override {
    body_(b);
    return {};
  }
  const void* alias_scope() const noexcept override {
    if (removed) ++asked_too_late;
    if (when_asked) std::exchange(when_asked, nullptr)();
    return nullptr;
  }

  MethodId method;
  mutable std::function<void()> when_asked;
  std::atomic<bool> removed = false;
  mutable std::atomic<int> asked_too_late = 0;

 private:
  Body body_;
};

// The caller's host, when it is asked for its alias scope to compare it with the callee's, has the
// callee removed.
TEST(RemovedHosts, nobody_asks_the_host_of_a_removed_method_that_is_being_inlined) {
  Scoped inner([](FunctionBuilder& b) { b.ret(b.binary(Opcode::kAdd, b.param(0), b.i64(7))); });
  Scoped outer([&](FunctionBuilder& b) {
    Value args[] = {b.param(0)};
    b.ret(b.call(inner.method, kOne, args));
  });
  auto made = Runtime::create(options({{"workers", "0"}, {"tier", "optimized"}}));
  ASSERT_TRUE(made.ok());
  Runtime& r = **made;
  ThreadScope scope(r);
  inner.add_to(r, 1);
  outer.add_to(r, 2);
  ASSERT_EQ(r.invoke(inner.method, {{1}}).bits, 8u);
  outer.when_asked = [&] {
    std::thread other([&] {
      remove(r, inner.method);
      inner.removed = true;
    });
    other.join();
  };
  r.invoke(outer.method, {{1}});
  EXPECT_EQ(outer.when_asked, nullptr) << "it was asked";
  EXPECT_EQ(inner.asked_too_late, 0);
}

}  // namespace
}  // namespace uptier::test::removed_hosts_test
