// Eviction where all calls are counted: plain code exists only for threads without counters, and is
// evicted like the rest.
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/runtime_host.h"

namespace uptier::test::evict_counted_test {
namespace {

// `count` methods g0, g1, ...: gk(x) = x + k, by one of two paths.
jit::Module branching_methods(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    std::string n = std::to_string(i);
    text += "func @g" + n + "(i64) -> i64 {\nb0(v0: i64):\n  v1 = const.i64 " + n +
            "\n  v2 = lt_u.i64 v0, v1\n  branch v2, b1, b2\n"
            "b1:\n  v3 = add.i64 v0, v1\n  return v3\n"
            "b2:\n  v4 = add.i64 v1, v0\n  return v4\n}\n";
  }
  return parse_or_die(text);
}

// The slab budget has room for the counters of a few methods only.
TEST(EvictCounted, threads_without_counters_may_call_what_is_being_evicted) {
  for (const char* workers : {"0", "1", "0", "1"}) {
    IrRuntime r(branching_methods(80), options({{"workers", workers},
                                                {"policy", "never"},
                                                {"interval", "1"},
                                                {"slab_budget", "4096"},
                                                {"code_budget", "69632"},
                                                {"pack_code", "off"}}));
    auto work = [&](uint64_t seed) {
      ThreadScope scope(*r.runtime);
      for (uint64_t i = 0; i < 12000; ++i) {
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
}

}  // namespace
}  // namespace uptier::test::evict_counted_test
