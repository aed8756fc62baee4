// A `build` that calls a method which is being described: it gets a trap with a reason, and nothing
// deadlocks.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/workshop.h"

namespace uptier::test::compile_turns_test {
namespace {

// The messages that the library logs.
struct Lines {
  std::mutex mutex;
  std::vector<std::string> all;

  static void add(void* to, LogLevel, std::string_view line) {
    auto& lines = *static_cast<Lines*>(to);
    std::lock_guard lock(lines.mutex);
    lines.all.emplace_back(line);
  }
  Options in(Options o) {
    o.log = &Lines::add;
    o.log_user = this;
    return o;
  }
};

TEST(CompileTurns, build_that_calls_its_own_method_gets_a_trap_with_a_reason) {
  for (const char* workers : {"0", "1"}) {
    Workshop w(options({{"workers", workers}}));
    ThreadScope scope(*w.runtime);
    auto self = std::make_shared<MethodId>();
    auto trap = std::make_shared<TrapCode>(TrapCode::kNone);
    Workshop* shop = &w;
    *self = w.add("self", kOne, [=](FunctionBuilder& b) {
      *trap = shop->call(*self, {1}).trap.code;
      b.ret(b.binary(Opcode::kAdd, b.param(0), b.i64(1)));
    });
    EXPECT_EQ(w.call(*self, {5}).bits, 6u);
    EXPECT_EQ(*trap, TrapCode::kNoCode);
    EXPECT_EQ(
        w.runtime->error_of(*self),
        "self: called while it is being described, by its own `build` or by one that it waits for");
    EXPECT_EQ(w.call(*self, {6}).bits, 7u);
  }
}

TEST(CompileTurns, of_two_threads_whose_builds_wait_for_each_other_one_is_refused) {
  Workshop w(options({{"workers", "0"}}));
  MethodId ids[2];
  std::atomic<int> inside{0}, refused{0};
  for (int i : {0, 1}) {
    ids[i] = w.add(i == 0 ? "a" : "b", kOne, [&, i](FunctionBuilder& b) {
      ++inside;
      while (inside < 2) std::this_thread::yield();
      Outcome o = w.call(ids[1 - i], {1});
      if (o.trap.code == TrapCode::kNoCode) ++refused;
      b.ret(b.binary(Opcode::kAdd, b.param(0), b.i64(static_cast<int64_t>(o.bits))));
    });
  }
  std::vector<std::thread> threads;
  for (int i : {0, 1}) {
    threads.emplace_back([&, i] {
      ThreadScope scope(*w.runtime);
      EXPECT_TRUE(w.call(ids[i], {1}).ok());
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(refused, 1);
}

// The trap drops the frames of the build, also the library's; the method can be described again.
TEST(CompileTurns, a_trap_that_drops_a_build_gives_its_turn_back) {
  Workshop w(options({{"workers", "0"}}));
  ThreadScope scope(*w.runtime);
  MethodId traps = w.add("traps", kOne, [](FunctionBuilder& b) { b.trap(TrapCode::kUnreachable); });
  uint64_t (*entry)(uint64_t) = w.runtime->entry<uint64_t(uint64_t)>(traps);
  auto first = std::make_shared<bool>(true);
  MethodId m = w.add("dropped", kOne, [=](FunctionBuilder& b) {
    if (std::exchange(*first, false)) entry(1);
    b.ret(b.param(0));
  });
  EXPECT_EQ(w.call(m, {5}).trap.code, TrapCode::kUnreachable);
  std::thread([&] { EXPECT_EQ(w.call(m, {5}).bits, 5u); }).join();
  EXPECT_EQ(w.call(m, {6}).bits, 6u);
}

// The frames of a build look at methods, so slots of methods that are removed meanwhile are not
// reused. The trap drops two nested builds and ends their looks; the outermost build goes on, and
// so does its look.
TEST(CompileTurns, a_trap_that_drops_builds_ends_their_looks_and_no_other) {
  Workshop w(full("6"));
  ThreadScope scope(*w.runtime);
  MethodId gone[] = {w.adder(1), w.adder(2)};
  MethodId traps = w.add("traps", kOne, [](FunctionBuilder& b) { b.trap(TrapCode::kUnreachable); });
  uint64_t (*trap)(uint64_t) = w.runtime->entry<uint64_t(uint64_t)>(traps);
  MethodId inner = w.add("inner", kOne, [=](FunctionBuilder& b) {
    trap(1);
    b.ret(b.param(0));
  });
  uint64_t (*call_inner)(uint64_t) = w.runtime->entry<uint64_t(uint64_t)>(inner);
  MethodId middle = w.add("middle", kOne, [=](FunctionBuilder& b) {
    call_inner(1);
    b.ret(b.param(0));
  });
  bool taken = true;
  MethodId outer = w.add("outer", kOne, [&](FunctionBuilder& b) {
    EXPECT_EQ(w.call(middle, {1}).trap.code, TrapCode::kUnreachable);
    std::thread([&] {
      w.remove(gone[0]);
      taken = takes_another(w);
    }).join();
    b.ret(b.param(0));
  });
  EXPECT_EQ(w.call(outer, {5}).bits, 5u);
  EXPECT_FALSE(taken);
  EXPECT_TRUE(takes_another(w));
  w.remove(gone[1]);
  EXPECT_TRUE(takes_another(w));
}

// A thread that is not part of a cycle waits, and gets the code.
TEST(CompileTurns, threads_that_first_call_one_method_wait_for_the_one_that_describes_it) {
  Workshop w(options({{"workers", "0"}}));
  std::atomic<int> builds{0};
  MethodId slow = w.add("slow", kOne, [&](FunctionBuilder& b) {
    ++builds;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    b.ret(b.param(0));
  });
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      ThreadScope scope(*w.runtime);
      Outcome o = w.call(slow, {i});
      EXPECT_TRUE(o.ok() && o.bits == i);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(builds, 1);
}

TEST(CompileTurns, in_build_ir_is_refused_and_flush_and_remove_do_nothing_and_say_so) {
  Lines lines;
  Workshop w(lines.in(options({{"workers", "0"}})));
  ThreadScope scope(*w.runtime);
  MethodId other = w.adder(1);
  auto self = std::make_shared<MethodId>();
  std::string ir_error;
  *self = w.add("asks", kOne, [&, self](FunctionBuilder& b) {
    Result<std::string> ir = w.runtime->ir(*self);
    if (!ir) ir_error = ir.error().message;
    w.runtime->flush();
    MethodId all[] = {*self, other};
    w.runtime->remove_methods(all);
    w.runtime->retire_methods(all);
    b.ret(b.param(0));
  });
  EXPECT_EQ(w.call(*self, {5}).bits, 5u);
  EXPECT_EQ(w.call(other, {5}).bits, 6u) << "nothing was removed";
  EXPECT_EQ(ir_error, "asks: its IR is requested by its `build`, or by one that waits for it");
  EXPECT_EQ(lines.all, (std::vector<std::string>{
                           "flush: `build` must not call it: nothing is done",
                           "remove_methods: `build` must not call it: nothing is done",
                           "retire_methods: `build` must not call it: nothing is done"}));
}

}  // namespace
}  // namespace uptier::test::compile_turns_test
