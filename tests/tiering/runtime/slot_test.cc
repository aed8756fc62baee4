// Sampling slots of loops: short if there are many calls, and constant for the method's life.
#include <gtest/gtest.h>

#include <set>

#include "jit/frontend/builder_access.h"
#include "tests/support/runtime_host.h"
#include "uptier/runtime.h"

namespace uptier::test::slot_test {
namespace {

struct Seen {
  std::set<uint64_t> bursts;  // of flushes that had samples
  uint64_t calls = 0;
  double estimate = 0;  // of the loop's block
};

Seen run(uint64_t iterations, uint64_t burst, uint64_t calls = 20'000) {
  CollectingSink sink;
  Options o;
  o.policy = PolicyMode::kNever;
  o.burst = burst;
  o.overhead_budget = 0;
  Seen seen;
  {
    IrRuntime r(parse_or_die(kSumText), o, &sink);
    ThreadScope scope(*r.runtime);
    // After the first flush, the worker makes the instrumented copy.
    for (uint64_t i = 0; i < calls; ++i) {
      r.call("sum", {iterations});
      if (i == 64 || calls < 64) r.runtime->flush();
    }
  }
  ProfileBuilder b;
  for (const TraceEvent& e : sink.events) EXPECT_TRUE(b.add(e).ok());
  for (const FlushEvent& f : sink.all<FlushEvent>()) {
    if (f.bursts != 0) seen.bursts.insert(f.burst);
  }
  const Profile p = b.profile();
  const MethodProfile& m = p.methods.begin()->second;
  seen.calls = m.calls;
  seen.estimate = m.estimate(SlotKind::kBlock, 2)->total;
  return seen;
}

TEST(Slots, are_short_where_there_are_many_calls) {
  using Bursts = std::set<uint64_t>;
  EXPECT_EQ(run(1, 32).bursts, Bursts{8});
  EXPECT_EQ(run(100, 32).bursts, Bursts{8});
  EXPECT_EQ(run(1, 2).bursts, Bursts{2});
  EXPECT_EQ(run(500'000, 32, 10).bursts, Bursts{32});
}

TEST(Slots, that_are_short_weigh_as_much_as_they_stand_for) {
  for (uint64_t iterations : {1, 7, 100}) {
    Seen seen = run(iterations, 32);
    EXPECT_EQ(seen.calls, 20'000u);
    double truth = 20'000 * static_cast<double>(iterations);
    EXPECT_NEAR(seen.estimate / truth, 1, 0.2) << iterations;
  }
}

}  // namespace
}  // namespace uptier::test::slot_test
