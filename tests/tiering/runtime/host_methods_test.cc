// Host methods that are seldom called, loops that are stopped from outside, and runtimes that are
// destroyed too early.
#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <thread>

#include "tests/support/workshop.h"

namespace uptier::test::host_methods_test {
namespace {

int64_t interpret(int64_t x) {
  if (x < 0) Runtime::raise(TrapCode::kHost, 7);
  return x + 1;
}

// Methods whose interpreter is a C function; counts how often a body was requested.
class Interpreted : public Host {
 public:
  explicit Interpreted(const Options& o) : runtime(std::move(*Runtime::create(o))) {}
  ~Interpreted() override { runtime.reset(); }

  MethodId add(bool may_trap) {
    MethodInfo info{{1, next_++}, "interpreted", signature_of(interpret)};
    info.host_entry = reinterpret_cast<const void*>(interpret);
    info.host_may_trap = may_trap;
    return *runtime->add_method(*this, info);
  }
  Status build(MethodId, FunctionBuilder& b) override {
    ++built;
    b.ret(b.binary(Opcode::kAdd, b.param(0), b.i64(1)));
    return {};
  }

  std::unique_ptr<Runtime> runtime;
  std::atomic<int> built{0};

 private:
  uint32_t next_ = 0;
};

uint64_t call(Interpreted& host, MethodId m, uint64_t x) {
  uint64_t args[] = {x};
  Outcome o = host.runtime->invoke(m, args);
  return o.ok() ? o.bits : 1000 + o.trap.detail;
}

TEST(HostMethods, what_is_never_called_costs_no_code) {
  Interpreted host(options({{"workers", "0"}}));
  auto code = [&] { return host.runtime->report().code_bytes_in_service; };
  host.add(false);
  uint64_t before = code();
  std::vector<MethodId> all;
  for (int n = 0; n < 60; ++n) all.push_back(host.add(true));  // makes their stubs
  EXPECT_EQ(code(), before);
  ThreadScope scope(*host.runtime);
  EXPECT_EQ(call(host, all[50], 1), 2u);
  EXPECT_EQ(call(host, all[50], UINT64_MAX), 1007u);
  EXPECT_GT(code(), before);
}

// A thread that ends flushes its counts, however small.
TEST(HostMethods, a_thread_that_ends_is_no_reason_to_compile) {
  for (const char* workers : {"0", "1"}) {
    Interpreted host(options({{"workers", workers}, {"flush_first", "32"}}));
    MethodId m = host.add(false);
    for (int n = 0; n < 31; ++n) {
      ThreadScope scope(*host.runtime);
      EXPECT_EQ(call(host, m, 1), 2u);
    }
    host.runtime->flush();
    EXPECT_EQ(host.built, 0) << workers;
    {
      ThreadScope scope(*host.runtime);
      EXPECT_EQ(call(host, m, 1), 2u);  // the 32nd call of all threads together
    }
    host.runtime->flush();
    for (auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
         host.built == 0 && std::chrono::steady_clock::now() < end;) {
      std::this_thread::yield();
    }
    EXPECT_GT(host.built, 0) << workers;
  }
}

// ---- Stopping a loop --------------------------------------------------------------------------

std::atomic<int32_t> asked{0};
std::atomic<uint64_t> answers{0};

// Compiled code calls this on the thread to stop: it may collect garbage, wait, or end the call.
void answer() {
  if (asked.exchange(0) == 2) return Runtime::raise(TrapCode::kHost, 7);
  ++answers;
}

// Runs until it is told to stop.
void build_endless(FunctionBuilder& b) {
  Block loop = b.create_block(), stop = b.create_block(), next = b.create_block();
  Variable n = b.declare(Type::kI64);
  b.def(n, b.param(0));
  b.jump(loop);
  b.switch_to(loop);
  b.loop_header();
  b.def(n, b.binary(Opcode::kAdd, b.use(n), b.i64(1)));
  // Alias class 0, so it is loaded again in every round.
  Value word = b.load(Opcode::kLoad, Type::kI32, {.base = b.ref(&asked)});
  b.branch(word, stop, next);
  b.seal(stop);
  b.switch_to(stop);
  b.call_host(host_function("answer", answer), {}, kCallMayTrap);
  b.jump(next);
  b.seal(next);
  b.switch_to(next);
  Block end = b.create_block();
  b.branch(b.binary(Opcode::kNe, b.use(n), b.i64(0)), loop, end);
  b.seal(loop);
  b.seal(end);
  b.switch_to(end);
  b.ret(b.use(n));
}

TEST(HostMethods, a_loop_answers_another_thread_and_ends_when_told_to) {
  for (const char* tier : {"auto", "baseline", "instrumented", "optimized"}) {
    Workshop w(options({{"tier", tier}}));
    MethodId endless = w.add("endless", kOne, build_endless);
    asked = answers = 0;
    std::atomic<bool> over{false};
    std::thread program([&] {
      ThreadScope scope(*w.runtime);
      Outcome o = w.call(endless, {1});
      EXPECT_EQ(o.trap.code, TrapCode::kHost) << w.runtime->error_of(endless);
      EXPECT_EQ(o.trap.detail, 7u);
      over = true;
    });
    for (uint64_t n = 1; n <= 3; ++n) {
      asked = 1;
      while (answers < n && !over) std::this_thread::yield();
    }
    asked = 2;
    program.join();
    EXPECT_EQ(answers, 3u) << tier;
  }
}

// ---- Too early --------------------------------------------------------------------------------

TEST(HostMethodsDeathTest, a_runtime_that_threads_are_attached_to_says_so) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto runtime = std::move(*Runtime::create(options({{"workers", "0"}})));
        std::binary_semaphore attached{0};
        std::thread other([&] {
          ThreadScope scope(*runtime);
          attached.release();
          pause();
        });
        attached.acquire();
        runtime.reset();
      },
      "uptier: a runtime is destroyed that 1 other threads are attached to");
}

}  // namespace
}  // namespace uptier::test::host_methods_test
