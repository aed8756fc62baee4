// Methods that are retired while they run: nobody calls them any more, their frames go on, and
// their hosts are told when the last frame has ended.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "tests/support/workshop.h"

namespace uptier::test::retire_test {
namespace {

class Listener : public Workshop {
 public:
  using Workshop::Workshop;
  ~Listener() override { runtime.reset(); }

  void gone(MethodId m) noexcept override {
    ++told[m];
    if (when_told) when_told(m);
  }
  void retire(MethodId m) {
    MethodId all[] = {m};
    runtime->retire_methods(all);
  }
  int times_told(MethodId m) { return told[m]; }

  std::map<MethodId, int> told;  // how often the host was told, by method
  std::function<void(MethodId)> when_told;
};

// An action for the next call of the host function.
std::function<void()> g_event;
uint64_t event(uint64_t x) {
  if (g_event) std::exchange(g_event, nullptr)();
  return x;
}

// f(x): event(x); for (s = 0; x != 0; --x) s += x; return s
void sum_after_event(FunctionBuilder& b) {
  Value args[] = {b.param(0)};
  Value x = b.call_host(host_function("event", event), args);
  loop_down(b, x, b.i64(0),
            [&](Value sum, Value rest) { return b.binary(Opcode::kAdd, sum, rest); });
}

uint64_t sum_to(uint64_t n) { return n * (n + 1) / 2; }

Options mode(const char* tier) {
  Options o = small();
  EXPECT_TRUE(o.set("tier", tier).ok());
  return o;
}

// In each tier, in the first call and in a late one: the frame goes on, also in loops that poll.
TEST(Retire, a_frame_of_a_retired_method_runs_to_its_end) {
  for (const char* tier : {"auto", "baseline", "instrumented", "optimized"}) {
    for (uint64_t calls : {0, 3, 300}) {
      Listener w(mode(tier));
      ThreadScope scope(*w.runtime);
      MethodId m = w.add("sum", kOne, sum_after_event);
      for (uint64_t i = 0; i < calls; ++i) ASSERT_EQ(w.call(m, {i % 9}).bits, sum_to(i % 9));
      const void* entry = w.runtime->entry_address(m);
      bool refused = false;
      g_event = [&] {
        w.retire(m);
        EXPECT_EQ(w.times_told(m), 0) << "its frame is above";
        refused = w.call(m, {1}).trap.code == TrapCode::kBadCall;
      };
      EXPECT_EQ(w.call(m, {5000}).bits, sum_to(5000)) << tier << ", " << calls;
      EXPECT_TRUE(refused);
      w.runtime->quiescent();
      EXPECT_EQ(w.times_told(m), 1) << tier << ", " << calls;
      EXPECT_EQ(w.runtime->entry_address(m), nullptr);
      MethodId dispatch = w.dispatcher();
      Outcome trap = w.call(dispatch, {reinterpret_cast<uintptr_t>(entry), 1});
      EXPECT_EQ(trap.trap.code, TrapCode::kNoCode);
      EXPECT_EQ(trap.trap.method, m);
    }
  }
}

TEST(Retire, a_host_is_told_at_the_end_of_an_outermost_invoke) {
  Listener w(small());
  ThreadScope scope(*w.runtime);
  MethodId m = w.add("sum", kOne, sum_after_event), other = w.adder(1);
  g_event = [&] { w.retire(m); };
  EXPECT_EQ(w.call(m, {9}).bits, sum_to(9));
  wipe_stack();
  EXPECT_EQ(w.call(other, {9}).bits, 10u);
  EXPECT_EQ(w.times_told(m), 1);
}

// In a loop of a program that never returns, other code is compiled and freed.
TEST(Retire, a_host_is_told_while_other_code_runs) {
  Listener w(small());
  ThreadScope scope(*w.runtime);
  MethodId loop = w.add("sum", kOne, sum_after_event), other = w.adder(1);
  g_event = [&] {
    for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(w.call(other, {i}).bits, i + 1);
    wipe_stack();
    w.retire(other);
    EXPECT_EQ(w.times_told(other), 1) << "its frames have returned";
  };
  EXPECT_EQ(w.call(loop, {10}).bits, sum_to(10));
  EXPECT_EQ(w.times_told(loop), 0);
}

TEST(Retire, a_method_that_never_ran_is_gone_at_once) {
  Listener w(small());
  MethodId m = w.adder(1);
  w.retire(m);
  EXPECT_EQ(w.times_told(m), 1);
  w.retire(m);
  w.remove(m);
  EXPECT_EQ(w.times_told(m), 1) << "once";
}

// An inlined body may exit from the code around it.
TEST(Retire, a_host_is_not_told_while_code_has_the_body_in_it) {
  Options o = small();
  o.max_methods = 4;
  o.removed_kept = 0;
  Listener w(o);
  ThreadScope scope(*w.runtime);
  MethodId inner = w.adder(7);
  MethodId outer = w.caller_of(inner);
  for (uint64_t i = 0; i < 300; ++i) ASSERT_EQ(w.call(outer, {i}).bits, i + 7);
  w.retire(inner);
  EXPECT_EQ(w.call(outer, {1}).bits, 8u) << "the body, in code that was made before";
  w.runtime->quiescent();
  EXPECT_EQ(w.times_told(inner), 0);
  // Another method needs the slot, so `outer` is compiled again without the body.
  for (uint64_t i = 0; i < 8 && w.times_told(inner) == 0; ++i) {
    MethodId m = w.adder(100);
    ASSERT_EQ(w.call(m, {1}).bits, 101u);
    w.remove(m);
  }
  EXPECT_EQ(w.times_told(inner), 1);
  EXPECT_EQ(w.call(outer, {1}).trap.code, TrapCode::kNoCode);
}

TEST(Retire, a_host_that_may_die_is_told_before) {
  Listener w(small());
  ThreadScope scope(*w.runtime);
  MethodId inner = w.adder(7);
  MethodId outer = w.caller_of(inner);
  for (uint64_t i = 0; i < 300; ++i) ASSERT_EQ(w.call(outer, {i}).bits, i + 7);
  w.retire(inner);
  ASSERT_EQ(w.times_told(inner), 0);
  w.remove(inner);
  EXPECT_EQ(w.times_told(inner), 1);
  w.remove(outer);
  EXPECT_EQ(w.times_told(outer), 0) << "was never retired";
}

TEST(Retire, the_end_of_the_runtime_tells_who_still_waits) {
  Listener w(small());
  MethodId inner = w.adder(7);
  MethodId outer = w.caller_of(inner);
  {
    ThreadScope scope(*w.runtime);
    for (uint64_t i = 0; i < 300; ++i) ASSERT_EQ(w.call(outer, {i}).bits, i + 7);
  }
  w.retire(inner);
  EXPECT_EQ(w.times_told(inner), 0);
  w.runtime.reset();
  EXPECT_EQ(w.times_told(inner), 1);
  EXPECT_EQ(w.times_told(outer), 0);
}

// The host's reaction to being told may retire or remove further methods.
TEST(Retire, a_host_may_take_out_other_methods_when_it_is_told) {
  Listener w(small());
  MethodId a = w.adder(1), b = w.adder(2), c = w.adder(3);
  w.when_told = [&](MethodId m) {
    if (m == a) w.retire(b);
    if (m == b) w.remove(c);
    w.remove(m);  // no effect
  };
  w.retire(a);
  EXPECT_EQ(w.times_told(a), 1);
  EXPECT_EQ(w.times_told(b), 1);
  EXPECT_EQ(w.runtime->entry_address(c), nullptr);
}

// An attached thread that does nothing until the test ends it.
class Bystander {
 public:
  explicit Bystander(Runtime& r) : thread_([&r, this] { run(r); }) { attached_.wait(false); }
  ~Bystander() { leave(); }
  void leave() {
    if (!thread_.joinable()) return;
    over_ = true;
    over_.notify_all();
    thread_.join();
  }

 private:
  void run(Runtime& r) {
    ThreadScope scope(r);
    attached_ = true;
    attached_.notify_all();
    over_.wait(false);
  }

  std::atomic<bool> attached_{false}, over_{false};
  std::thread thread_;
};

TEST(Retire, a_thread_that_may_run_the_code_is_waited_for) {
  Listener w(small());
  ThreadScope scope(*w.runtime);
  MethodId m = w.adder(1);
  ASSERT_EQ(w.call(m, {1}).bits, 2u);
  Bystander other(*w.runtime);
  w.retire(m);
  w.runtime->quiescent();
  EXPECT_EQ(w.times_told(m), 0);
  other.leave();
  EXPECT_EQ(w.times_told(m), 1);
}

// A thread may be about to enter a method that is called for the first time.
TEST(Retire, the_place_of_a_method_that_never_ran_waits_for_threads_too) {
  Workshop w(full("1"));
  Bystander other(*w.runtime);
  w.remove(w.adder(1));
  EXPECT_FALSE(takes_another(w));
  other.leave();
  EXPECT_TRUE(takes_another(w));
}

// The compilation may have found the body while the method was in service.
TEST(Retire, a_compilation_that_began_before_is_waited_for) {
  Listener w(small());
  MethodId inner = w.adder(1);
  std::atomic<int> stage{0};
  MethodId outer = w.add("outer", kOne, [&](FunctionBuilder& b) {
    if (stage == 0) {
      stage = 1;
      stage.notify_all();
      stage.wait(1);
    }
    Value args[] = {b.param(0)};
    b.ret(b.call(inner, kOne, args));
  });
  Outcome o;
  std::thread other([&] { o = w.call(outer, {1}); });
  stage.wait(0);
  w.retire(inner);
  EXPECT_EQ(w.times_told(inner), 0);
  stage = 2;
  stage.notify_all();
  other.join();
  EXPECT_EQ(w.times_told(inner), 1);
  EXPECT_EQ(o.trap.code, TrapCode::kNoCode);
}

// Counts of frames that go on are not lost.
TEST(Retire, what_frames_count_afterwards_is_handed_over) {
  Listener w(options({{"workers", "0"}, {"policy", "never"}}));
  MethodId m = w.add("sum", kOne, sum_after_event);
  {
    ThreadScope scope(*w.runtime);
    g_event = [&] { w.retire(m); };
    ASSERT_EQ(w.call(m, {5000}).bits, sum_to(5000));
  }
  Report r = w.runtime->report();
  ASSERT_EQ(r.methods.size(), 1u);
  EXPECT_EQ(r.methods[0].calls, 1u);
  EXPECT_GE(r.methods[0].loop_iterations, 5000u);
}

// ---- Own code -------------------------------------------------------------------------------------

class Compiled : public Host {
 public:
  Result<HostCode> compile(const Plan&, const MethodProfile&) override {
    return HostCode{reinterpret_cast<const void*>(event), 0};
  }
  void release(MethodId, const HostCode&) noexcept override { said += "release "; }
  void gone(MethodId) noexcept override { said += "gone "; }
  std::string said;
};

TEST(Retire, code_of_the_hosts_is_given_back_when_nothing_runs_it) {
  Compiled host;
  auto r = Runtime::create(options({{"workers", "0"}}));
  ASSERT_TRUE(r.ok());
  ThreadScope scope(**r);
  MethodInfo info{{1, 1}, "own", kOne};
  info.own_code = true;
  Result<MethodId> m = (*r)->add_method(host, info);
  ASSERT_TRUE(m.ok());
  std::string during;
  g_event = [&] {
    MethodId all[] = {*m};
    (*r)->retire_methods(all);
    during = host.said;
  };
  EXPECT_EQ((*r)->invoke(*m, {{42}}).bits, 42u);
  EXPECT_EQ(during, "");
  (*r)->quiescent();
  EXPECT_EQ(host.said, "release gone ");
}

}  // namespace
}  // namespace uptier::test::retire_test
