// Entries that are called with no invoke around them: a trap ends the process with a message.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/coroutine.h"
#include "tests/support/workshop.h"

namespace uptier::test::orphaned_trap_test {
namespace {

// Removes handlers of sanitizers or earlier tests, which would take the faults.
void with_default_handlers() {
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(s, SIG_DFL);
}

MethodId add_unbuilt(Workshop& w) {
  return w.add("unbuilt", kOne,
               [](FunctionBuilder& b) { b.ret(b.f64(1)); });  // returns the wrong type
}

MethodId add_division(Workshop& w) {
  return w.add("hundredth", kOne,
               [](FunctionBuilder& b) { b.ret(b.binary(Opcode::kDivU, b.i64(100), b.param(0))); });
}

uint64_t enter(Workshop& w, MethodId m, uint64_t x) {
  return w.runtime->entry<uint64_t(uint64_t)>(m)(x);
}

class OrphanedTrapDeathTest : public testing::Test {
 protected:
  OrphanedTrapDeathTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(OrphanedTrapDeathTest, of_a_method_without_code_names_it) {
  EXPECT_DEATH(
      {
        Workshop w(options({{"workers", "0"}}));
        ThreadScope scope(*w.runtime);
        enter(w, add_unbuilt(w), 1);
      },
      "uptier: trap no code could be made in unbuilt: no invoke is under way");
}

TEST_F(OrphanedTrapDeathTest, of_a_fault_names_method_and_trap) {
  for (const char* tier : {"baseline", "optimized"}) {
    EXPECT_DEATH(
        {
          with_default_handlers();
          Workshop w(options({{"tier", tier}}));
          ThreadScope scope(*w.runtime);
          enter(w, add_division(w), 0);
        },
        "uptier: trap integer divide by zero in hundredth: no invoke is under way")
        << tier;
  }
}

// Fills the stack with frames of compiled code.
TEST_F(OrphanedTrapDeathTest, of_a_stack_that_is_exhausted_has_room_to_say_so) {
  EXPECT_DEATH(
      {
        with_default_handlers();
        Workshop w(options({{"tier", "baseline"}}));
        ThreadScope scope(*w.runtime);
        auto self = std::make_shared<MethodId>();
        *self = w.add("endless", kOne, [self](FunctionBuilder& b) {
          Value args[] = {b.param(0)};
          b.ret(b.binary(Opcode::kAdd, b.call(*self, kOne, args), b.i64(1)));
        });
        enter(w, *self, 0);
      },
      "uptier: trap call stack exhausted in endless: no invoke is under way");
}

// An invoke on another stack does not count.
TEST_F(OrphanedTrapDeathTest, of_a_stack_without_an_invoke_of_its_own) {
  EXPECT_DEATH(
      {
        Workshop w(options({{"workers", "0"}}));
        ThreadScope scope(*w.runtime);
        MethodId unbuilt = add_unbuilt(w);
        static std::function<void()> resume;
        uint64_t (*host)(uint64_t) = [](uint64_t x) {
          resume();
          return x;
        };
        MethodId outer = w.add("outer", kOne, [=](FunctionBuilder& b) {
          b.ret(b.call_host(host_function("host", host), {b.param(0)}, kCallMayTrap));
        });
        Coroutine c(*w.runtime, [&] { enter(w, unbuilt, 1); });
        resume = [&] { c.resume(); };
        w.call(outer, {1});
      },
      "uptier: trap no code could be made in unbuilt: no invoke is under way");
}

TEST(OrphanedTrap, below_an_invoke_an_entry_may_trap) {
  Workshop w(options({{"workers", "0"}}));
  ThreadScope scope(*w.runtime);
  static uint64_t (*unbuilt)(uint64_t) = nullptr;
  unbuilt = w.runtime->entry<uint64_t(uint64_t)>(add_unbuilt(w));
  uint64_t (*host)(uint64_t) = [](uint64_t x) { return unbuilt(x) + 1; };
  MethodId outer = w.add("outer", kOne, [=](FunctionBuilder& b) {
    b.ret(b.call_host(host_function("host", host), {b.param(0)}, kCallMayTrap));
  });
  EXPECT_EQ(w.call(outer, {1}).trap.code, TrapCode::kNoCode);
}

}  // namespace
}  // namespace uptier::test::orphaned_trap_test
