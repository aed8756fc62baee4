// Eviction of code: the coldest methods lose theirs, blocked threads do not hold it back, and an
// evicted method is compiled again at its next call.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/support/runtime_host.h"

namespace uptier::test::evict_test {
namespace {

// `count` methods f0, f1, ...: fk(x) = x + k. Each takes a page of code or more.
jit::Module many_methods(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    std::string n = std::to_string(i);
    text += "func @f" + n + "(i64) -> i64 {\nb0(v0: i64):\n  v1 = const.i64 " + n +
            "\n  v2 = add.i64 v0, v1\n  return v2\n}\n";
  }
  return parse_or_die(text);
}

Options little_room() {
  Options o;
  o.workers = 0;
  o.policy = PolicyMode::kNever;
  o.code_budget = 68u << 10;
  o.pack_code = false;  // so each method takes a page
  return o;
}

TEST(Evict, more_methods_than_there_is_room_for_all_run) {
  IrRuntime r(many_methods(100), little_room());
  ThreadScope scope(*r.runtime);
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 100; ++i) {
      Outcome o = r.runtime->invoke(r.host->method(MethodId(i)), {{round}});
      ASSERT_TRUE(o.ok()) << i << " in round " << round;
      ASSERT_EQ(o.bits, round + i);
    }
  }
  Report report = r.runtime->report();
  EXPECT_GT(report.losses.evictions, 100u);
  EXPECT_LE(report.code_bytes_in_service, little_room().code_budget);
}

TEST(Evict, method_that_is_called_all_the_time_stays) {
  IrRuntime r(many_methods(60), little_room());
  ThreadScope scope(*r.runtime);
  MethodId hot = r.host->method(MethodId(0));
  for (uint64_t i = 0; i < 600; ++i) {
    ASSERT_EQ(r.runtime->invoke(hot, {{i}}).bits, i);
    ASSERT_EQ(r.runtime->invoke(r.host->method(MethodId(1 + i % 59)), {{i}}).bits, i + 1 + i % 59);
  }
  Report report = r.runtime->report();
  const MethodReport f0 = r.report_of("f0");
  EXPECT_EQ(f0.name, "f0");
  EXPECT_FALSE(f0.versions.empty());
  EXPECT_LE(f0.versions.size(), 6u) << "made again each time?";
  EXPECT_GT(report.losses.evictions, 60u);
}

// The calls have so many arguments that the code is many times larger than its number of
// instructions suggests.
TEST(Evict, method_that_is_longer_than_guessed_gets_the_room_of_all_that_do_not_run) {
  jit::Module m = many_methods(40);
  std::string params = "i64", values = "v0", text;
  for (int i = 1; i < 20; ++i) params += ", i64", values += ", v" + std::to_string(i % 2);
  text = "func @callee(" + params + ") -> i64 {\nb0(v0: i64";
  for (int i = 1; i < 20; ++i) text += ", v" + std::to_string(i) + ": i64";
  text += "):\n  return v19\n}\nfunc @big(i64, i64) -> i64 {\nb0(v0: i64, v1: i64):\n";
  for (int i = 2; i < 230; ++i) {
    text += "  v" + std::to_string(i) + " = call @callee(" + values + ")\n";
  }
  text += "  return v229\n}\n";
  for (jit::Function& f : parse_or_die(text).functions) {
    for (jit::Callee& c : f.callees) c.method = MethodId(40);
    m.functions.push_back(std::move(f));
  }
  IrRuntime r(std::move(m), little_room());
  ThreadScope scope(*r.runtime);
  for (uint64_t i = 0; i < 40; ++i) {
    ASSERT_EQ(r.runtime->invoke(r.host->method(MethodId(i)), {{1}}).bits, 1 + i);
  }
  Outcome o = r.runtime->invoke(r.method("big"), {{3, 5}});
  ASSERT_TRUE(o.ok()) << trap_text(o.trap.code) << ": " << r.runtime->error_of(r.method("big"));
  EXPECT_EQ(o.bits, 5u);
  EXPECT_GT(r.runtime->report().code_bytes_in_service, 50'000u) << "not large";
}

TEST(Evict, counts_survive_and_optimized_methods_come_back_optimized) {
  Options o = little_room();
  o.policy = PolicyMode::kAlways;
  o.flush_first = 4;
  IrRuntime r(many_methods(60), o);
  ThreadScope scope(*r.runtime);
  MethodId first = r.host->method(MethodId(0));
  for (uint64_t i = 0; i < 50; ++i) ASSERT_EQ(r.runtime->invoke(first, {{i}}).bits, i);
  for (uint64_t i = 1; i < 60; ++i) {
    ASSERT_EQ(r.runtime->invoke(r.host->method(MethodId(i)), {{1}}).bits, 1 + i);
  }
  for (uint64_t i = 0; i < 50; ++i) ASSERT_EQ(r.runtime->invoke(first, {{i}}).bits, i);
  r.runtime->flush();
  Report report = r.runtime->report();
  EXPECT_GT(report.losses.evictions, 0u);
  const MethodReport f0 = r.report_of("f0");
  EXPECT_EQ(f0.calls, 100u);
  EXPECT_EQ(f0.tier, Tier::kOptimized);
  size_t optimized = 0;
  for (const VersionReport& v : f0.versions) optimized += v.tier == Tier::kOptimized;
  EXPECT_GE(optimized, 2u) << "it was evicted and made again";
}

// Two threads that call methods which the other's calls evict.
TEST(Evict, threads_may_call_what_is_being_evicted) {
  Options o = little_room();
  o.workers = 1;
  o.policy = PolicyMode::kAlways;
  o.flush_first = 2;
  IrRuntime r(many_methods(80), o);
  auto work = [&](uint64_t seed) {
    ThreadScope scope(*r.runtime);
    for (uint64_t i = 0; i < 4000; ++i) {
      uint64_t k = (i * 7 + seed * 31 + i / 13) % 80;
      Outcome out = r.runtime->invoke(r.host->method(MethodId(k)), {{i}});
      if (!out.ok())
        continue;  // both threads hold code and nothing fits: a call may be refused,
                   // but is never wrong
      ASSERT_EQ(out.bits, i + k);
    }
  };
  std::thread a(work, 1), b(work, 2);
  a.join();
  b.join();
  EXPECT_GT(r.runtime->report().losses.evictions, 50u);
}

// ---- Blocked threads --------------------------------------------------------------------------

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  Runtime* runtime = nullptr;
  int stage = 0;

  void reach(int n) {
    std::lock_guard lock(mutex);
    stage = std::max(stage, n);
    changed.notify_all();
  }
  void await(int n) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stage >= n; });
  }
};
Gate* gate = nullptr;
bool say_so = true;

// A host function that waits for another thread, with a compiled frame below it.
extern "C" uint64_t wait_in_host(uint64_t x) {
  if (say_so) gate->runtime->begin_blocked();
  gate->reach(1);
  gate->await(2);
  if (say_so) gate->runtime->end_blocked();
  return x;
}

uint64_t freed_while_a_thread_waits(bool says_so) {
  say_so = says_so;
  Gate g;
  gate = &g;
  HostFunction wait{"wait", (const void*)wait_in_host, {{Type::kI64}, Type::kI64}};
  jit::Module m = parse_or_die(
      "func @waiter(i64) -> i64 {\nb0(v0: i64):\n"
      "  v1 = call_host @wait.(i64)->i64 (v0)\n  v2 = add.i64 v1, v0\n  return v2\n}\n"
      "func @other(i64) -> i64 {\nb0(v0: i64):\n  v1 = add.i64 v0, v0\n  return v1\n}\n",
      {{wait}});
  Options o;
  o.workers = 0;
  o.policy = PolicyMode::kAlways;
  IrRuntime r(std::move(m), o);
  g.runtime = r.runtime.get();
  std::thread waiter([&] {
    ThreadScope scope(*r.runtime);
    EXPECT_EQ(r.runtime->invoke(r.host->method(MethodId(0)), {{21}}).bits, 42u);
  });
  g.await(1);
  {
    ThreadScope scope(*r.runtime);
    MethodId other = r.host->method(MethodId(1));
    for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(r.runtime->invoke(other, {{i}}).bits, 2 * i);
    MethodId gone[] = {r.host->method(MethodId(0))};
    r.runtime->remove_methods(gone);  // it is on the waiter's stack, so it must not be freed
    r.runtime->quiescent();
  }
  uint64_t freed = 0, kept_of_waiter = 0;
  for (const MethodReport& method : r.runtime->report().methods) {
    for (const VersionReport& v : method.versions) {
      kept_of_waiter += method.name == "waiter" && !v.freed;
      freed += method.name == "other" && v.freed;
    }
  }
  EXPECT_GE(kept_of_waiter, 1u) << "a frame of it waits";
  g.reach(2);
  waiter.join();
  return freed;
}

TEST(Blocked, thread_that_says_it_waits_holds_only_what_is_on_its_stack) {
  EXPECT_GE(freed_while_a_thread_waits(true), 1u) << "the baseline code of the other method";
}

TEST(Blocked, thread_that_does_not_say_so_holds_everything) {
  EXPECT_EQ(freed_while_a_thread_waits(false), 0u);
}

// ---- Direct calls -----------------------------------------------------------------------------

IrRuntime* direct = nullptr;

// Called from @outer, which was called directly. Makes @outer hot, so that the code of the frame
// below is replaced, then returns from an invoke that has only direct calls around it.
extern "C" uint64_t replace_caller(uint64_t x) {
  if (x != 7) return x;
  auto* outer = direct->runtime->entry<uint64_t(uint64_t)>(direct->method("outer"));
  for (uint64_t i = 100; i < 700; ++i) EXPECT_EQ(outer(i), 2 * i);
  EXPECT_EQ(direct->call("leaf", {1}).bits, 1u);
  return x;
}

TEST(Reclaim, code_below_a_host_function_stays_although_no_invoke_is_around_it) {
  HostFunction host{"replace", (const void*)replace_caller, {{Type::kI64}, Type::kI64}};
  IrRuntime r(parse_or_die("func @outer(i64) -> i64 {\nb0(v0: i64):\n"
                           "  v1 = call_host @replace.(i64)->i64 (v0)\n  v2 = add.i64 v1, v0\n"
                           "  return v2\n}\n"
                           "func @leaf(i64) -> i64 {\nb0(v0: i64):\n  return v0\n}\n",
                           {{host}}),
              options({{"policy", "always"}, {"workers", "0"}, {"flush_first", "8"}}));
  direct = &r;
  ThreadScope scope(*r.runtime);
  auto* outer = r.runtime->entry<uint64_t(uint64_t)>(r.method("outer"));
  EXPECT_EQ(outer(7), 14u);
  EXPECT_EQ(r.report_of("outer").tier, Tier::kOptimized) << "or nothing was replaced";
  auto freed = [&] {
    uint64_t n = 0;
    for (const VersionReport& v : r.report_of("outer").versions) n += v.freed;
    return n;
  };
  uint64_t before = freed();
  EXPECT_EQ(r.call("leaf", {1}).bits, 1u);
  EXPECT_GT(freed(), before) << "now nothing on the stack needs it";
}

// Runs guest code while it describes a method.
class NestingHost : public Host {
 public:
  Status build(MethodId m, FunctionBuilder& b) override {
    if (m == nesting) {
      Outcome o = runtime->invoke(waiter, {{5}});
      EXPECT_EQ(o.bits, 10u);
    }
    b.ret(b.param(0));
    return {};
  }
  Runtime* runtime = nullptr;
  MethodId nesting, waiter;
};

TEST(Blocked, host_that_runs_guest_code_while_it_describes_a_method_keeps_that_code) {
  say_so = false;
  Gate g;
  gate = &g;
  HostFunction wait{"wait", (const void*)wait_in_host, {{Type::kI64}, Type::kI64}};
  Options o;
  o.workers = 0;
  IrRuntime r(parse_or_die("func @waiter(i64) -> i64 {\nb0(v0: i64):\n"
                           "  v1 = call_host @wait.(i64)->i64 (v0)\n  v2 = add.i64 v1, v0\n"
                           "  return v2\n}\n",
                           {{wait}}),
              o);
  NestingHost host;
  host.runtime = r.runtime.get();
  host.waiter = r.host->method(MethodId(0));
  Result<MethodId> m = r.runtime->add_method(
      host, {.key = {9, 9}, .name = "nesting", .signature = {{Type::kI64}, Type::kI64}});
  ASSERT_TRUE(m.ok());
  host.nesting = *m;
  {
    // The waiter must have code already: compiling it would end the wait.
    g.reach(2);
    ThreadScope scope(*r.runtime);
    EXPECT_EQ(r.runtime->invoke(host.waiter, {{1}}).bits, 2u);
    g.stage = 0;
  }
  std::thread nesting([&] {
    ThreadScope scope(*r.runtime);
    EXPECT_EQ(r.runtime->invoke(*m, {{7}}).bits, 7u);
  });
  g.await(1);
  {
    ThreadScope scope(*r.runtime);
    MethodId gone[] = {host.waiter};
    r.runtime->remove_methods(gone);
    r.runtime->quiescent();
    EXPECT_EQ(r.runtime->report().code_bytes_freed, 0u) << "a frame of it waits";
  }
  g.reach(2);
  nesting.join();
}

TEST(Blocked, idle_thread_lets_everything_go) {
  IrRuntime r(many_methods(1), [] {
    Options o;
    o.workers = 0;
    o.policy = PolicyMode::kAlways;
    return o;
  }());
  Gate g;
  std::thread idle([&] {
    ThreadScope scope(*r.runtime);
    BlockedScope blocked(*r.runtime);
    g.reach(1);
    g.await(2);
  });
  g.await(1);
  {
    ThreadScope scope(*r.runtime);
    for (uint64_t i = 0; i < 1000; ++i) r.runtime->invoke(r.host->method(MethodId(0)), {{i}});
  }
  EXPECT_GT(r.runtime->report().code_bytes_freed, 0u);
  g.reach(2);
  idle.join();
}

}  // namespace
}  // namespace uptier::test::evict_test
