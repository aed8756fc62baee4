// Frames of retired methods: the hosts describe the methods and resume their calls until the last
// frame has ended, on whatever stack and thread.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "tests/support/coroutine.h"
#include "tests/support/workshop.h"

namespace uptier::test::retire_frames_test {
namespace {

// An action for the next call of the host function.
thread_local std::function<void()> g_event;
uint64_t event(uint64_t x) {
  if (g_event) std::exchange(g_event, nullptr)();
  return x;
}

// inner(x): event(x); guard x % 16 != 3; return x + k
// outer(x): return inner(x) + 1000
class Pairs : public Host {
 public:
  struct Pair {
    MethodId inner, outer;
    uint64_t k;

    uint64_t result(uint64_t x) const { return x + k + 1000; }
  };

  explicit Pairs(const Options& o) {
    auto r = Runtime::create(o);
    EXPECT_TRUE(r.ok());
    runtime = std::move(*r);
  }
  ~Pairs() override { runtime.reset(); }

  Pair add(uint64_t k) {
    Pair p{{}, {}, k};
    p.inner = add("inner", {k, {}}, resume);
    p.outer = add("outer", {k, p.inner}, nullptr);
    return p;
  }
  void retire(const Pair& p) {
    const MethodId all[] = {p.inner, p.outer};
    runtime->retire_methods(all);
  }
  Outcome call(const Pair& p, uint64_t x) { return runtime->invoke(p.outer, {{x}}); }
  void warm_up(const Pair& p) {
    for (uint64_t i = 0; i < 500; ++i) {
      ASSERT_EQ(call(p, 16 * i).bits, p.result(16 * i));
      ASSERT_EQ(runtime->invoke(p.inner, {{16 * i}}).bits, 16 * i + p.k);
    }
  }
  // Twice: baseline code that frames went on in is freed only after all code that could exit into
  // it.
  void be_quiescent() {
    for (int i = 0; i < 2; ++i) runtime->quiescent();
  }
  size_t left() {
    std::lock_guard lock(mutex_);
    return known_.size();
  }

  std::unique_ptr<Runtime> runtime;
  std::atomic<uint64_t> told{0}, resumed{0};
  std::atomic<uint64_t> late{0};  // calls for a method after its host was told that it is gone

 private:
  struct What {
    uint64_t k = 0;
    MethodId inner;  // the callee of an outer method
  };

  // Waits if the host makes methods faster than they are freed.
  MethodId add(const char* name, What what, uint64_t (*host_resume)(const HostFrame*)) {
    MethodInfo info{{1, next_++}, name, kOne};
    info.host_resume = host_resume;
    while (true) {
      {
        std::lock_guard lock(mutex_);
        if (Result<MethodId> m = runtime->add_method(*this, info)) {
          known_[*m] = what;
          return *m;
        }
      }
      runtime->quiescent();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  What what_of(MethodId m) {
    std::lock_guard lock(mutex_);
    auto at = known_.find(m);
    late += at == known_.end();
    return at == known_.end() ? What() : at->second;
  }
  static uint64_t resume(const HostFrame* f) {
    auto& self = *static_cast<Pairs*>(f->host);
    ++self.resumed;
    return f->slots[0] + self.what_of(f->method).k;
  }
  Status build(MethodId m, FunctionBuilder& b) override {
    What what = what_of(m);
    Value args[] = {b.param(0)};
    if (what.inner.valid()) {
      b.ret(b.binary(Opcode::kAdd, b.call(what.inner, kOne, args), b.i64(1000)));
      return {};
    }
    Value x = b.call_host(host_function("event", event), args);
    const Value slots[] = {x};
    b.frame_state(0, slots);
    Value rest = b.binary(Opcode::kAnd, x, b.i64(15));
    b.guard(b.binary(Opcode::kNe, rest, b.i64(3)), GuardReason::kUser);
    b.ret(b.binary(Opcode::kAdd, x, b.i64(static_cast<int64_t>(what.k))));
    return {};
  }
  void gone(MethodId m) noexcept override {
    std::lock_guard lock(mutex_);
    late += known_.erase(m) == 0;
    ++told;
  }

  std::mutex mutex_;
  std::map<MethodId, What> known_;
  uint32_t next_ = 0;
};

// ---- Coroutines ---------------------------------------------------------------------------------

TEST(RetireFrames, a_suspended_one_leaves_its_code_when_it_goes_on) {
  for (uint64_t x : {1, 3}) {
    Pairs w(small());
    ThreadScope scope(*w.runtime);
    Pairs::Pair p = w.add(7);
    w.warm_up(p);
    uint64_t bits = 0;
    auto c = std::make_unique<Coroutine>(*w.runtime, [&] {
      g_event = [] { Coroutine::running()->yield(); };
      bits = w.call(p, x).bits;
    });
    c->resume();
    ASSERT_FALSE(c->ended());
    w.retire(p);
    w.runtime->quiescent();
    EXPECT_EQ(w.told, 0u);
    c->resume();
    ASSERT_TRUE(c->ended());
    EXPECT_EQ(bits, p.result(x));
    EXPECT_EQ(w.resumed, x == 3 ? 1u : 0u);
    c.reset();
    w.be_quiescent();
    EXPECT_EQ(w.told, 2u);
    EXPECT_EQ(w.late, 0u);
  }
}

TEST(RetireFrames, one_that_is_dropped_with_its_stack_needs_nothing) {
  Pairs w(small());
  ThreadScope scope(*w.runtime);
  Pairs::Pair p = w.add(7);
  w.warm_up(p);
  auto c = std::make_unique<Coroutine>(*w.runtime, [&] {
    g_event = [] { Coroutine::running()->yield(); };
    w.call(p, 1);
  });
  c->resume();
  w.retire(p);
  w.runtime->quiescent();
  EXPECT_EQ(w.told, 0u);
  c.reset();
  w.be_quiescent();
  EXPECT_EQ(w.told, 2u);
}

// ---- Threads ------------------------------------------------------------------------------------

// The inner frame is in host code, called from code of the outer method with the inner body
// inlined.
TEST(RetireFrames, another_threads_frame_in_host_code_is_waited_for) {
  for (bool blocks : {false, true}) {
    Pairs w(small());
    ThreadScope scope(*w.runtime);
    Pairs::Pair p = w.add(7);
    w.warm_up(p);
    std::atomic<int> stage{0};
    uint64_t bits = 0;
    std::thread other([&] {
      ThreadScope attached(*w.runtime);
      g_event = [&] {
        if (blocks) w.runtime->begin_blocked();
        stage = 1;
        stage.notify_all();
        stage.wait(1);
        if (blocks) w.runtime->end_blocked();
      };
      bits = w.call(p, 3).bits;
    });
    stage.wait(0);
    w.retire(p);
    w.runtime->quiescent();
    EXPECT_EQ(w.told, 0u);
    stage = 2;
    stage.notify_all();
    other.join();
    EXPECT_EQ(bits, p.result(3));
    EXPECT_EQ(w.resumed, 1u);
    EXPECT_EQ(w.late, 0u);
    w.be_quiescent();
    EXPECT_EQ(w.told, 2u);
  }
}

// Calls begin, and frames exit from their code, while the methods are retired.
TEST(RetireFrames, calls_that_begin_meanwhile_run_or_are_refused) {
  constexpr uint64_t kRounds = 150;
  for (const char* workers : {"0", "1"}) {
    Options o = small();
    ASSERT_TRUE(o.set("workers", workers).ok());
    Pairs w(o);
    std::array<Pairs::Pair, kRounds + 1> pairs;
    pairs[0] = w.add(0);
    std::atomic<uint64_t> latest{0}, ran{0};
    std::atomic<bool> over{false};
    auto call_latest = [&](uint64_t x) {
      const Pairs::Pair& p = pairs[latest.load()];
      Outcome got = w.call(p, x);
      bool refused = got.trap.code == TrapCode::kBadCall || got.trap.code == TrapCode::kNoCode;
      if (got.ok()) {
        EXPECT_EQ(got.bits, p.result(x));
      } else {
        EXPECT_TRUE(refused) << trap_text(got.trap.code);
      }
      ran += got.ok();
    };
    std::vector<std::thread> callers;
    for (int t = 0; t < 2; ++t) {
      callers.emplace_back([&] {
        ThreadScope scope(*w.runtime);
        for (uint64_t x = 0; !over; ++x) {
          call_latest(x);
          if (x % 64 == 0) w.runtime->quiescent();
        }
      });
    }
    {
      ThreadScope scope(*w.runtime);
      for (uint64_t k = 1; k <= kRounds; ++k) {
        for (uint64_t x = 0; x < 100; ++x) call_latest(x);
        pairs[k] = w.add(k);
        latest = k;
        w.retire(pairs[k - 1]);
      }
      over = true;
      for (std::thread& t : callers) t.join();
      w.retire(pairs[kRounds]);
    }
    w.runtime->flush();  // waits until no compilation is under way
    w.runtime->retire_methods({});
    EXPECT_EQ(w.told, 2 * (kRounds + 1));
    EXPECT_EQ(w.left(), 0u);
    EXPECT_EQ(w.late, 0u);
    EXPECT_GT(w.resumed, 0u);
    EXPECT_GE(ran, 100 * kRounds);
  }
}

}  // namespace
}  // namespace uptier::test::retire_frames_test
