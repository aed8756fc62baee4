// A host's own stacks: compiled code is suspended in the middle and resumed, while other code runs,
// traps, recurses and is replaced.
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>

#include "tests/support/coroutine.h"
#include "tests/support/workshop.h"

namespace uptier::test::stacks_test {
namespace {

// ---- Host functions -----------------------------------------------------------------------------

thread_local uint64_t g_passed = 0;  // value that a yielding coroutine passes to its resumer

// Suspends the coroutine in which the calling code runs.
uint64_t yield_value(uint64_t value) {
  g_passed = value;
  Coroutine::running()->yield();
  return value;
}

Coroutine* g_next = nullptr;

// Resumes a coroutine and returns the value that it yields.
uint64_t next_value(uint64_t) {
  g_next->resume();
  return g_passed;
}

std::function<uint64_t(uint64_t)> g_callback;
uint64_t call_back(uint64_t x) { return g_callback(x); }

HostFunction yielding() { return host_function("yield_value", yield_value); }
HostFunction next() { return host_function("next_value", next_value); }
HostFunction callback() { return host_function("call_back", call_back); }

// ---- Bodies -----------------------------------------------------------------------------------

// for (i = 0; i < n; ++i) total += host(i); return total;
Workshop::Body sum_of(const HostFunction& host) {
  return [=](FunctionBuilder& b) {
    Variable i = b.declare(kLong), total = b.declare(kLong);
    b.def(i, b.i64(0));
    b.def(total, b.i64(0));
    Block loop = b.create_block(), body = b.create_block(), done = b.create_block();
    b.jump(loop);
    b.switch_to(loop);
    b.loop_header();
    b.branch(b.binary(Opcode::kLtU, b.use(i), b.param(0)), body, done);
    b.seal(body);
    b.switch_to(body);
    Value x = b.call_host(host, {b.use(i)}, kCallMayTrap);
    b.def(total, b.binary(Opcode::kAdd, b.use(total), x));
    b.def(i, b.binary(Opcode::kAdd, b.use(i), b.i64(1)));
    b.jump(loop);
    b.seal(loop);
    b.seal(done);
    b.switch_to(done);
    b.ret(b.use(total));
  };
}

// return n == 0 ? last(0) : 1 + deep(n - 1);
MethodId add_deep(Workshop& w) {
  auto self = std::make_shared<MethodId>();
  *self = w.add("deep", kOne, [self](FunctionBuilder& b) {
    Block more = b.create_block(), done = b.create_block();
    b.branch(b.binary(Opcode::kNe, b.param(0), b.i64(0)), more, done);
    b.seal(more);
    b.seal(done);
    b.switch_to(more);
    Value args[] = {b.binary(Opcode::kSub, b.param(0), b.i64(1))};
    b.ret(b.binary(Opcode::kAdd, b.call(*self, kOne, args), b.i64(1)));
    b.switch_to(done);
    b.ret(b.call_host(callback(), {b.param(0)}, kCallMayTrap));
  });
  return *self;
}

// return 100 / x;
MethodId add_division(Workshop& w) {
  return w.add("hundredth", kOne, [](FunctionBuilder& b) {
    b.set_location(9);
    b.ret(b.binary(Opcode::kDivU, b.i64(100), b.param(0)));
  });
}

Options in_mode(const std::string& mode) {
  if (mode == "baseline") return options({{"tier", "baseline"}});
  if (mode == "optimized") return options({{"tier", "optimized"}});
  if (mode == "instrumented") return options({{"tier", "instrumented"}});
  if (mode == "loops") return options({{"loops", "on"}, {"interval", "1"}, {"workers", "0"}});
  Options o = options({{"policy", "always"}, {"workers", "0"}, {"flush_first", "4"}});
  if (mode == "stress") o.stress = "osr=every:3,flip=every:2";
  return o;
}

class StacksIn : public testing::TestWithParam<const char*> {};

// ---- Back and forth ---------------------------------------------------------------------------

TEST_P(StacksIn, generators_are_left_and_go_on_in_the_middle_of_compiled_code) {
  Workshop w(in_mode(GetParam()));
  ThreadScope scope(*w.runtime);
  MethodId produce = w.add("produce", kOne, sum_of(yielding()));
  MethodId consume = w.add("consume", kOne, sum_of(next()));
  for (uint64_t n : {1, 5, 60}) {
    uint64_t total = 0;
    Coroutine generator(*w.runtime, [&] {
      Outcome o = w.call(produce, {n});
      EXPECT_TRUE(o.ok()) << trap_text(o.trap.code);
      total = o.bits;
    });
    g_next = &generator;
    EXPECT_EQ(w.call(consume, {n}).bits, n * (n - 1) / 2) << n;
    EXPECT_FALSE(generator.ended());
    generator.resume();
    EXPECT_TRUE(generator.ended());
    EXPECT_EQ(total, n * (n - 1) / 2) << n;
  }
}

std::vector<MethodId> walked(const Workshop& w) {
  std::array<CallSite, 16> sites;
  std::vector<MethodId> methods;
  for (size_t n = 0, all = w.runtime->walk(sites); n < all; ++n) methods.push_back(sites[n].method);
  return methods;
}

TEST_P(StacksIn, a_walk_lists_the_calls_of_the_stack_that_the_thread_is_on) {
  Workshop w(in_mode(GetParam()));
  ThreadScope scope(*w.runtime);
  MethodId deep = add_deep(w), outer = w.add("outer", kOne, sum_of(callback()));
  const std::vector<MethodId> outside = {outer}, inside(4, deep);
  std::unique_ptr<Coroutine> c;
  int walks = 0;
  g_callback = [&](uint64_t) -> uint64_t {
    bool within = Coroutine::running() != nullptr;
    EXPECT_EQ(walked(w), within ? inside : outside);
    within ? c->yield() : c->resume();
    EXPECT_EQ(walked(w), within ? inside : outside);
    walks += 2;
    return 1;
  };
  for (int round = 0; round < 20; ++round) {
    c = std::make_unique<Coroutine>(*w.runtime, [&] { EXPECT_EQ(w.call(deep, {3}).bits, 4u); });
    EXPECT_EQ(w.call(outer, {2}).bits, 2u);
    EXPECT_TRUE(c->ended());
  }
  EXPECT_EQ(walks, 20 * (4 + 2));
  g_callback = nullptr;
}

// The reverse: compiled code in the coroutine resumes the code outside, which runs compiled code.
TEST_P(StacksIn, coroutines_call_code_that_resumes_others) {
  Workshop w(in_mode(GetParam()));
  ThreadScope scope(*w.runtime);
  MethodId produce = w.add("produce", kOne, sum_of(yielding()));
  MethodId consume = w.add("consume", kOne, sum_of(next()));
  constexpr uint64_t kCount = 50;
  Coroutine inner(*w.runtime, [&] { w.call(produce, {kCount}); });
  uint64_t total = 0;
  Coroutine outer(*w.runtime, [&] {
    g_next = &inner;
    total = w.call(consume, {kCount}).bits;
  });
  outer.resume();
  EXPECT_TRUE(outer.ended());
  EXPECT_EQ(total, kCount * (kCount - 1) / 2);
}

// Many coroutines at once, resumed in turns.
TEST_P(StacksIn, many_are_suspended_at_once_and_go_on_in_any_order) {
  Workshop w(in_mode(GetParam()));
  ThreadScope scope(*w.runtime);
  MethodId produce = w.add("produce", kOne, sum_of(yielding()));
  MethodId other = w.adder(3);
  constexpr uint64_t kMany = 20, kCount = 30;
  std::vector<uint64_t> totals(kMany);
  std::vector<std::unique_ptr<Coroutine>> all;
  for (uint64_t k = 0; k < kMany; ++k) {
    all.push_back(std::make_unique<Coroutine>(
        *w.runtime, [&, k] { totals[k] = w.call(produce, {kCount + k}).bits; }));
  }
  for (uint64_t step = 0, left = kMany; left != 0; ++step) {
    Coroutine& c = *all[(step * 7) % kMany];
    if (c.ended()) continue;
    c.resume();
    left -= c.ended();
    ASSERT_EQ(w.call(other, {step}).bits, step + 3);
  }
  for (uint64_t k = 0; k < kMany; ++k) {
    EXPECT_EQ(totals[k], (kCount + k) * (kCount + k - 1) / 2) << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, StacksIn,
                         testing::Values("baseline", "optimized", "instrumented", "loops", "auto",
                                         "stress"),
                         [](const auto& info) { return std::string(info.param); });

// ---- Limits -----------------------------------------------------------------------------------

// Returns how many frames fit on a stack; more than `most` if the limit is not reached.
uint64_t depth_of(Workshop& w, MethodId deep, uint64_t most) {
  uint64_t low = 0, high = most;
  while (low < high) {
    uint64_t middle = (low + high + 1) / 2;
    Outcome o = w.call(deep, {middle});
    EXPECT_EQ(o.trap.code, o.ok() ? TrapCode::kNone : TrapCode::kStackExhausted);
    (o.ok() ? low : high) = o.ok() ? middle : middle - 1;
  }
  return low;
}

constexpr uint64_t kDeep = 20'000;

TEST(Stacks, deep_recursion_traps_on_the_small_stack_and_only_there) {
  for (const char* tier : {"baseline", "optimized"}) {
    Workshop w(in_mode(tier));
    ThreadScope scope(*w.runtime);
    MethodId deep = add_deep(w);
    g_callback = [](uint64_t) { return 0; };
    size_t bytes = Options().stack_reserve + (64 << 10);
    uint64_t small = 0, again = 0, left = 0;
    Coroutine c(
        *w.runtime,
        [&] {
          small = depth_of(w, deep, kDeep);
          left = Runtime::stack_left();
          Coroutine::running()->yield();
          again = depth_of(w, deep, kDeep);
        },
        bytes);
    EXPECT_EQ(depth_of(w, deep, kDeep), kDeep) << "before";
    c.resume();
    EXPECT_LT(small, kDeep);
    EXPECT_GT(small, 100u) << "it is there to be used";
    EXPECT_LT(left, uint64_t{64} << 10);
    EXPECT_GT(left, uint64_t{32} << 10);
    EXPECT_EQ(depth_of(w, deep, kDeep), kDeep) << "while it is suspended";
    c.resume();
    EXPECT_TRUE(c.ended());
    EXPECT_EQ(again, small) << "there the limit is what it was";
    EXPECT_EQ(depth_of(w, deep, kDeep), kDeep) << "afterwards";
  }
}

// Switches from the bottom of one stack to another, and from there to the first one's limit and
// back.
TEST(Stacks, a_stack_is_suspended_at_its_limit_while_another_has_room) {
  Workshop w(in_mode("baseline"));
  ThreadScope scope(*w.runtime);
  MethodId deep = add_deep(w);
  size_t bytes = Options().stack_reserve + (64 << 10);
  g_callback = [](uint64_t) { return 0; };
  uint64_t small = 0, bits = 0;
  bool yields = false;
  Coroutine c(
      *w.runtime,
      [&] {
        small = depth_of(w, deep, kDeep);
        yields = true;
        bits = w.call(deep, {small}).bits;
      },
      bytes);
  g_callback = [&](uint64_t) {
    if (yields) Coroutine::running()->yield();
    return 0;
  };
  c.resume();
  ASSERT_FALSE(c.ended());
  yields = false;
  EXPECT_EQ(w.call(deep, {kDeep}).bits, kDeep);
  c.resume();
  EXPECT_EQ(bits, small);
}

// One stack below the thread's own stack, and one above it.
TEST(Stacks, may_lie_on_either_side_of_the_threads_own) {
  constexpr size_t kOwn = 2u << 20, kBeside = 1u << 20;
  StackMemory all(kBeside + kOwn + kBeside);
  struct World {
    char* low;
    uint64_t frames[3] = {};
  } world{all.low(), {}};
  auto run = [](void* p) -> void* {
    auto& world = *static_cast<World*>(p);
    Workshop w(in_mode("baseline"));
    ThreadScope scope(*w.runtime);
    g_callback = [](uint64_t) { return 0; };
    MethodId deep = add_deep(w);
    char* places[] = {world.low, world.low + kBeside + kOwn};
    for (int k = 0; k < 2; ++k) {
      Result<NativeStack*> stack = w.runtime->create_stack(places[k], kBeside);
      EXPECT_TRUE(stack.ok());
      ucontext_t inside, outside;
      static thread_local std::function<void()> body;
      body = [&] {
        world.frames[k] = depth_of(w, deep, 1'000'000);
        EXPECT_TRUE(w.runtime->switch_stack(nullptr).ok());
      };
      getcontext(&inside);
      inside.uc_stack = {places[k], 0, kBeside};
      inside.uc_link = &outside;
      makecontext(
          &inside, [] { body(); }, 0);
      EXPECT_TRUE(w.runtime->switch_stack(*stack).ok());
      swapcontext(&outside, &inside);
      EXPECT_TRUE(w.runtime->destroy_stack(*stack).ok());
    }
    world.frames[2] = depth_of(w, deep, 1'000'000);
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, all.low() + kBeside, kOwn), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &world), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_GT(world.frames[0], 1000u);
  EXPECT_NEAR(static_cast<double>(world.frames[0]), static_cast<double>(world.frames[1]),
              static_cast<double>(world.frames[0]) / 50)
      << "they are as large as each other";
  EXPECT_GT(world.frames[2], world.frames[0]);
}

// ---- Traps ------------------------------------------------------------------------------------

TEST(Stacks, a_trap_ends_the_innermost_invoke_of_the_stack_that_it_happens_on) {
  for (const char* tier : {"baseline", "optimized"}) {
    Workshop w(in_mode(tier));
    ThreadScope scope(*w.runtime);
    MethodId produce = w.add("produce", kOne, sum_of(yielding()));
    MethodId division = add_division(w);
    MethodId outer = w.add("outer", kOne, sum_of(callback()));
    uint64_t total = 0;
    Coroutine suspended(*w.runtime, [&] { total = w.call(produce, {10}).bits; });
    suspended.resume();
    Outcome trapped;
    Coroutine traps(*w.runtime, [&] { trapped = w.call(division, {0}); });
    // Inside an invoke on the thread's own stack.
    g_callback = [&](uint64_t i) {
      if (i == 0) traps.resume();
      EXPECT_EQ(w.call(division, {0}).trap.code, TrapCode::kDivideByZero);
      suspended.resume();
      return i;
    };
    EXPECT_EQ(w.call(outer, {4}).bits, 6u);
    EXPECT_TRUE(traps.ended());
    EXPECT_EQ(trapped.trap.code, TrapCode::kDivideByZero);
    EXPECT_EQ(trapped.trap.method, division);
    EXPECT_EQ(trapped.trap.location, 9u);
    while (!suspended.ended()) suspended.resume();
    EXPECT_EQ(total, 45u);
  }
}

// Neither trap ends the invoke that began last.
TEST(Stacks, a_trap_behind_a_switch_ends_the_invoke_of_its_own_stack) {
  for (const char* tier : {"baseline", "optimized"}) {
    Workshop w(in_mode(tier));
    ThreadScope scope(*w.runtime);
    MethodId divides = w.add("divides", kOne, [](FunctionBuilder& b) {
      Value x = b.call_host(callback(), {b.param(0)}, kCallMayTrap);
      b.ret(b.binary(Opcode::kDivU, b.i64(100), x));
    });
    Outcome inside;
    Coroutine c(*w.runtime, [&] { inside = w.call(divides, {0}); });
    g_callback = [&](uint64_t x) {
      Coroutine::running() == nullptr ? c.resume() : Coroutine::running()->yield();
      return x;
    };
    EXPECT_EQ(w.call(divides, {0}).trap.code, TrapCode::kDivideByZero);
    EXPECT_FALSE(c.ended());
    EXPECT_EQ(w.call(divides, {5}).bits, 20u);  // resumes the coroutine meanwhile
    EXPECT_TRUE(c.ended());
    EXPECT_EQ(inside.trap.code, TrapCode::kDivideByZero);
  }
}

TEST(Stacks, a_trap_that_was_raised_waits_with_its_stack) {
  Workshop w(in_mode("baseline"));
  ThreadScope scope(*w.runtime);
  MethodId outer = w.add("outer", kOne, sum_of(callback()));
  Outcome o;
  Coroutine c(*w.runtime, [&] { o = w.call(outer, {5}); });
  g_callback = [&](uint64_t i) {
    if (Coroutine::running() == nullptr || i != 3) return i;
    Runtime::raise(TrapCode::kHost, 77);
    Coroutine::running()->yield();
    return i;
  };
  c.resume();
  ASSERT_FALSE(c.ended());
  EXPECT_EQ(w.call(outer, {5}).bits, 10u) << "it is not this stack's";
  c.resume();
  EXPECT_TRUE(c.ended());
  EXPECT_EQ(o.trap.code, TrapCode::kHost);
  EXPECT_EQ(o.trap.detail, 77u);
  EXPECT_EQ(o.trap.method, outer);
  EXPECT_EQ(w.runtime->report().losses.traps_lost, 0u);
}

// ---- Code that is replaced --------------------------------------------------------------------

Options little_room() {
  return options(
      {{"workers", "0"}, {"policy", "never"}, {"code_budget", "69632"}, {"pack_code", "off"}});
}

uint64_t kept_of(const Runtime& r, const std::string& name) {
  uint64_t kept = 0;
  for (const MethodReport& m : r.report().methods) {
    for (const VersionReport& v : m.versions) kept += m.name == name && !v.freed;
  }
  return kept;
}

// Calls so many other methods that all code without frames is evicted.
void fill(Workshop& w, std::vector<MethodId>& others) {
  if (others.empty()) {
    for (uint64_t k = 0; k < 60; ++k) others.push_back(w.adder(k));
  }
  for (uint64_t k = 0; k < others.size(); ++k) ASSERT_EQ(w.call(others[k], {1}).bits, k + 1);
}

TEST(Stacks, code_stays_while_a_stack_is_suspended_in_it_and_no_longer) {
  Workshop w(little_room());
  ThreadScope scope(*w.runtime);
  MethodId produce = w.add("produce", kOne, sum_of(yielding()));
  std::vector<MethodId> others;
  uint64_t total = 0;
  Coroutine c(*w.runtime, [&] { total = w.call(produce, {100}).bits; });
  for (int k = 0; k < 20; ++k) {
    c.resume();
    fill(w, others);
    ASSERT_GE(kept_of(*w.runtime, "produce"), 1u) << "it is suspended there";
  }
  EXPECT_GT(w.runtime->report().losses.evictions, 100u);
  while (!c.ended()) c.resume();
  EXPECT_EQ(total, 4950u);
}

TEST(Stacks, code_goes_when_the_stack_that_was_suspended_in_it_is_destroyed) {
  Workshop w(little_room());
  ThreadScope scope(*w.runtime);
  MethodId produce = w.add("produce", kOne, sum_of(yielding()));
  std::vector<MethodId> others;
  {
    Coroutine c(*w.runtime, [&] { w.call(produce, {100}); });
    c.resume();
    fill(w, others);
    ASSERT_GE(kept_of(*w.runtime, "produce"), 1u);
  }
  fill(w, others);
  EXPECT_EQ(kept_of(*w.runtime, "produce"), 0u);
  EXPECT_EQ(w.call(others[3], {1}).bits, 4u);
}

// Here the thread's own stack is the suspended one.
TEST(Stacks, code_below_the_function_that_resumes_stays) {
  Workshop w(little_room());
  ThreadScope scope(*w.runtime);
  MethodId consume = w.add("consume", kOne, sum_of(next()));
  std::vector<MethodId> others;
  Coroutine c(*w.runtime, [&] {
    for (g_passed = 0; g_passed < 50; ++g_passed) {
      fill(w, others);
      EXPECT_GE(kept_of(*w.runtime, "consume"), 1u) << "the thread's own stack is in it";
      Coroutine::running()->yield();
    }
  });
  g_next = &c;
  EXPECT_EQ(w.call(consume, {10}).bits, 45u);
  fill(w, others);
  EXPECT_EQ(kept_of(*w.runtime, "consume"), 0u);
}

TEST(Stacks, what_says_that_nothing_runs_does_not_take_suspended_code_away) {
  Workshop w(little_room());
  ThreadScope scope(*w.runtime);
  MethodId produce = w.add("produce", kOne, sum_of(yielding()));
  std::vector<MethodId> others;
  uint64_t total = 0;
  Coroutine c(*w.runtime, [&] { total = w.call(produce, {30}).bits; });
  while (!c.ended()) {
    c.resume();
    fill(w, others);
    w.runtime->quiescent();
    { BlockedScope blocked(*w.runtime); }
    ASSERT_GE(kept_of(*w.runtime, "produce"), c.ended() ? 0u : 1u);
  }
  EXPECT_EQ(total, 435u);
}

// Several threads, each with coroutines in code that the calls of others evict.
TEST(Stacks, stress_of_eviction_with_coroutines_on_several_threads) {
  Options o = little_room();
  o.workers = 1;
  o.policy = PolicyMode::kAlways;
  o.flush_first = 4;
  o.code_budget = 224u << 10;
  Workshop w(o);
  MethodId produce = w.add("produce", kOne, sum_of(yielding()));
  std::vector<MethodId> others;
  for (uint64_t k = 0; k < 60; ++k) others.push_back(w.adder(k));
  // All code may be in use for a while, also by the other threads: a host tries again.
  auto call = [&](MethodId m, uint64_t argument) {
    Outcome o = w.call(m, {argument});
    for (int tries = 0; o.trap.code == TrapCode::kNoCode && tries < 10'000; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      o = w.call(m, {argument});
    }
    return o;
  };
  // Each thread passes its own values.
  auto run = [&](uint64_t seed) {
    ThreadScope scope(*w.runtime);
    for (uint64_t round = 0; round < 5; ++round) {
      std::array<uint64_t, 6> totals = {};
      std::vector<std::unique_ptr<Coroutine>> all;
      for (uint64_t k = 0; k < totals.size(); ++k) {
        all.push_back(std::make_unique<Coroutine>(
            *w.runtime, [&, k] { totals[k] = call(produce, 20 + k).bits; }));
      }
      for (uint64_t step = 0, left = all.size(); left != 0; ++step) {
        Coroutine& c = *all[(step * 5 + seed) % all.size()];
        if (!c.ended()) {
          c.resume();
          left -= c.ended();
        }
        uint64_t k = (step * 11 + seed * 17) % others.size();
        Outcome o = call(others[k], step);
        ASSERT_EQ(o.bits, step + k) << trap_text(o.trap.code);
      }
      for (uint64_t k = 0; k < totals.size(); ++k) {
        ASSERT_EQ(totals[k], (20 + k) * (19 + k) / 2) << k;
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t k = 0; k < 3; ++k) threads.emplace_back(run, k);
  for (std::thread& t : threads) t.join();
  EXPECT_GT(w.runtime->report().losses.evictions, 0u);
}

}  // namespace
}  // namespace uptier::test::stacks_test
