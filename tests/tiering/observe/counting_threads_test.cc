// Every call is counted, on every thread: where a method's cell leads to code that counts, no
// thread reaches that code without counters, whichever way the call took.
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/runtime_host.h"

namespace uptier::test::counting_threads_test {
namespace {

// The leaf's guard fails from 40 on.
constexpr const char* kGuardedLeaf = R"(
func @leaf(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 40
  v2 = lt_u.i64 v0, v1
  frame_state pc=1 [v0]
  guard v2, value @9
  v3 = const.i64 20
  v4 = lt_u.i64 v0, v3
  branch v4, b1, b2
b1:
  return v3
b2:
  return v0
}
func @top(i64) -> i64 {
b0(v0: i64):
  v1 = call @leaf(v0)
  v2 = add.i64 v1, v0
  return v2
}
)";

// The caller was compiled when the leaf was optimized, and is not compiled again.
TEST(CountingThreads, a_thread_calls_what_was_optimized_and_is_counted_again) {
  IrRuntime r(parse_or_die(kGuardedLeaf), options({{"interval", "1"},
                                                   {"workers", "0"},
                                                   {"policy", "always"},
                                                   {"inlining", "off"},
                                                   {"flush_first", "8"},
                                                   {"exit_limit", "1"},
                                                   {"exit_retries", "0"}}));
  ThreadScope scope(*r.runtime);
  for (uint64_t i = 0; i < 20; ++i) ASSERT_EQ(r.call("leaf", {30}).bits, 30u);
  ASSERT_EQ(r.report_of("leaf").tier, Tier::kOptimized);
  for (uint64_t i = 0; i < 20; ++i) ASSERT_EQ(r.call("top", {30}).bits, 60u);
  ASSERT_EQ(r.report_of("top").tier, Tier::kOptimized);
  ASSERT_EQ(r.call("leaf", {50}).trap.code, TrapCode::kGuardFailed);
  ASSERT_EQ(r.call("leaf", {30}).bits, 30u);
  ASSERT_EQ(r.report_of("leaf").tier, Tier::kBaseline) << "banned, and made again";
  ASSERT_EQ(r.report_of("top").tier, Tier::kOptimized);
  std::thread other([&] {
    ThreadScope attached(*r.runtime);
    for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(r.call("top", {30}).bits, 60u);
  });
  other.join();
  r.runtime->flush();
  EXPECT_EQ(r.report_of("leaf").calls, r.report_of("leaf").sampled_calls);
}

// Such a thread has no counters of its own, in any mode.
TEST(CountingThreads, a_thread_that_is_not_attached_calls_entries_unobserved) {
  for (const char* tier : {"auto", "instrumented"}) {
    for (const char* policy : {"never", "always"}) {
      IrRuntime r(parse_or_die(kSumText), options({{"tier", tier},
                                                   {"interval", "1"},
                                                   {"workers", "0"},
                                                   {"policy", policy},
                                                   {"flush_first", "8"}}));
      auto* sum = r.runtime->entry<uint64_t(uint64_t)>(r.method("sum"));
      for (int i = 0; i < 20; ++i) EXPECT_EQ(sum(1000), 500'500u);
      EXPECT_EQ(r.report_of("sum").calls, 0u);
      {
        ThreadScope attached(*r.runtime);
        for (int i = 0; i < 20; ++i) EXPECT_EQ(sum(1000), 500'500u);
      }
      for (int i = 0; i < 20; ++i) EXPECT_EQ(sum(1000), 500'500u);
      EXPECT_EQ(r.report_of("sum").calls, 20u);
    }
  }
}

}  // namespace
}  // namespace uptier::test::counting_threads_test
