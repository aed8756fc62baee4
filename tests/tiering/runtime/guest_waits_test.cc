// Code below guest frames waits only for counted reasons, and never once the guest's code exists.
#include "tiering/runtime/guest_waits.h"

#include <gtest/gtest.h>

#include "sampler/context.h"
#include "tests/support/workshop.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/guest.h"

namespace uptier::test::guest_waits_test {
namespace {

using Why = tiering::GuestWaits::Why;

// The calling thread must be attached to the runtime.
uint64_t count(Why why) {
  const auto* engine = static_cast<const tiering::Engine*>(sampler::current_context()->runtime);
  return engine->guest->waits.count(why);
}

TEST(GuestWaits, a_method_waits_for_its_code_once_and_then_never) {
  Workshop shop(options({{"policy", "never"}}));
  ThreadScope scope(*shop.runtime);
  const MethodId adder = shop.adder(5), caller = shop.caller_of(adder);
  for (uint64_t i = 0; i < 10'000; ++i) ASSERT_EQ(shop.call(caller, {i}).bits, i + 5);
  EXPECT_EQ(count(Why::kFirstCall), 2u);
  for (Why other : {Why::kEnterable, Why::kExitLimit, Why::kHostLoops, Why::kErrorText,
                    Why::kReclaim, Why::kWorkerless, Why::kStress}) {
    EXPECT_EQ(count(other), 0u) << static_cast<int>(other);
  }
}

TEST(GuestWaits, without_a_worker_threads_do_its_work_and_that_is_counted) {
  Workshop shop(options({{"workers", "0"}, {"policy", "never"}, {"flush_first", "1"}}));
  ThreadScope scope(*shop.runtime);
  const MethodId m = shop.at_least(3);
  for (uint64_t i = 0; i < 100; ++i) shop.call(m, {i});
  EXPECT_GT(count(Why::kWorkerless), 0u);
}

TEST(GuestWaits, code_that_a_stress_plan_asks_for_is_counted) {
  Workshop shop(options({{"workers", "0"}, {"policy", "never"}, {"stress", "osr=all"}}));
  ThreadScope scope(*shop.runtime);
  const MethodId loop = shop.add("loop", kOne, [](FunctionBuilder& b) {
    loop_down(b, b.param(0), b.i64(0),
              [&](Value sum, Value x) { return b.binary(Opcode::kAdd, sum, x); });
  });
  EXPECT_EQ(shop.call(loop, {10}).bits, 55u);
  EXPECT_GT(count(Why::kStress), 0u);
}

// Returns how many pins the calling thread has for a method.
int pins_of(MethodId m) {
  const auto* engine = static_cast<const tiering::Engine*>(sampler::current_context()->runtime);
  int pins = 0;
  engine->here()->stacks.each_pinned([&](const tiering::Method* p) { pins += p->id == m; });
  return pins;
}

// The host may wait in `build`, and may remove the method meanwhile.
TEST(GuestWaits, pins_the_method_whose_slow_path_runs_build) {
  for (const char* stress : {"", "osr=all", "osr_out=all", "guard=all"}) {
    Workshop shop(options({{"workers", "0"}, {"policy", "never"}, {"stress", stress}}));
    ThreadScope scope(*shop.runtime);
    MethodId loop = MethodId::none();
    int builds = 0;
    loop = shop.add("loop", kOne, [&](FunctionBuilder& b) {
      ++builds;
      EXPECT_GT(pins_of(loop), 0) << stress << ", build " << builds;
      loop_down(b, b.param(0), b.i64(0),
                [&](Value sum, Value x) { return b.binary(Opcode::kAdd, sum, x); });
    });
    for (int i = 0; i < 3; ++i) EXPECT_EQ(shop.call(loop, {10}).bits, 55u);
    EXPECT_GT(builds, 0);
    EXPECT_EQ(pins_of(loop), 0);
  }
}

// Without a worker, a call of one method makes the code of another.
TEST(GuestWaits, pins_the_method_whose_flush_does_the_workers_work) {
  Workshop shop(options({{"workers", "0"}, {"policy", "always"}, {"flush_first", "1"}}));
  ThreadScope scope(*shop.runtime);
  MethodId m = MethodId::none();
  int optimized = 0;
  m = shop.add("loop", kOne, [&](FunctionBuilder& b) {
    EXPECT_GT(pins_of(m), 0);
    ++optimized;
    loop_down(b, b.param(0), b.i64(0),
              [&](Value sum, Value x) { return b.binary(Opcode::kAdd, sum, x); });
  });
  for (uint64_t i = 0; i < 2000; ++i) shop.call(m, {100});
  EXPECT_GT(count(Why::kWorkerless), 0u);
  EXPECT_GT(optimized, 0);
  EXPECT_EQ(pins_of(m), 0);
}

}  // namespace
}  // namespace uptier::test::guest_waits_test
