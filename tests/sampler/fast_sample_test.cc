// The fast path of a sampled call either does the same as the slow one, or nothing.
#include "sampler/fast_sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sampler/reservation.h"
#include "sampler/schedule.h"

namespace uptier::sampler::fast_sample_test {
namespace {

// A context with one method that has a slab, as attached threads have it.
class FastSampleTest : public testing::Test {
 protected:
  FastSampleTest() {
    Result<Reservation> r =
        Reservation::create(kMethodsOffset + 16 * sizeof(MethodState), "context");
    memory_ = std::move(*r);
    context().runtime = this;
    context().random = 42;
    state().slab = &slab_;
  }
  ThreadContext& context() { return *static_cast<ThreadContext*>(memory_.data()); }
  MethodState& state() { return context().method(0); }

  Reservation memory_;
  uint64_t slab_ = 0;
  int code_ = 0;
};

bool same(const MethodState& a, const MethodState& b) {
  return a.call_countdown == b.call_countdown && a.calls == b.calls &&
         a.next_sample == b.next_sample && a.next_flush == b.next_flush && a.call_gap == b.call_gap;
}

TEST_F(FastSampleTest, times_one_sample_in_32) {
  Schedule schedule = Schedule::make(GapKind::kFixed, 2, 32);
  schedule.flush_first = 1 << 20;
  FastSampling fast(this, 16, schedule);
  fast.add(0);
  fast.set_entry(0, &code_);
  uint64_t taken = 0;
  for (int call = 1; call <= 10'000; ++call) {
    if (--state().call_countdown >= 0) continue;
    if (fast.take(0, context()) != nullptr) {
      ++taken;
    } else {
      call_event(state(), schedule, context().random);
    }
  }
  ASSERT_GT(taken, 1000u);
  // All except the few that were interrupted.
  EXPECT_NEAR(static_cast<double>(fast.timed(CostKind::kCall).timed),
              static_cast<double>(taken) / 32, 20);
  EXPECT_GT(fast.timed(CostKind::kCall).cycles, 0u);
}

TEST_F(FastSampleTest, takes_the_same_samples_as_the_slow_path) {
  for (GapKind kind : {GapKind::kRandom, GapKind::kFixed, GapKind::kPrime}) {
    for (uint32_t interval : {1u, 2u, 7u, 16u, 64u, 1000u, 5000u}) {
      state() = MethodState();
      state().slab = &slab_;
      Schedule schedule = Schedule::make(kind, interval, 32);
      FastSampling fast(this, 16, schedule);
      fast.add(0);
      fast.set_entry(0, &code_);
      uint64_t taken = 0;
      for (int call = 1; call <= 300'000; ++call) {
        if (--state().call_countdown >= 0) continue;
        MethodState slow_state = state();
        uint64_t slow_random = context().random;
        CallEvent e = call_event(slow_state, schedule, slow_random);
        ASSERT_EQ(e.call, static_cast<uint64_t>(call));
        const void* target = fast.take(0, context());
        if (target == nullptr) {
          state() = slow_state;
          context().random = slow_random;
          continue;
        }
        ++taken;
        EXPECT_EQ(target, &code_);
        EXPECT_TRUE(e.sample && !e.flush) << "only plain samples are taken here";
        ASSERT_TRUE(same(state(), slow_state)) << "call " << call << " interval " << interval;
        ASSERT_EQ(context().random, slow_random);
      }
      // Only the first sample and those that coincide with a flush take the slow path.
      EXPECT_GT(taken, 300'000 / interval * 7 / 10) << interval;
    }
  }
}

TEST_F(FastSampleTest, leaves_everything_else_alone) {
  Schedule schedule = Schedule::make(GapKind::kFixed, 4, 32);
  FastSampling fast(this, 16, schedule);
  fast.add(0);
  fast.set_entry(0, &code_);
  auto refuses = [&] {
    MethodState before = state();
    uint64_t random = context().random;
    bool null = fast.take(0, context()) == nullptr;
    return null && same(before, state()) && context().random == random;
  };
  state().call_countdown = -1;
  EXPECT_TRUE(refuses()) << "never armed";
  call_event(state(), schedule, context().random);
  state().call_countdown = -1;
  EXPECT_FALSE(refuses());
  state().call_countdown = -1;
  state().slab = nullptr;
  EXPECT_TRUE(refuses()) << "no slab";
  state().slab = &slab_;
  state().call_countdown = 3;
  EXPECT_TRUE(refuses()) << "not due";
  state().call_countdown = -1;
  state().next_flush = state().calls + state().call_gap;
  EXPECT_TRUE(refuses()) << "a flush is due too";
  state().next_flush = 1000;
  fast.set_entry(0, nullptr);
  EXPECT_TRUE(refuses()) << "no instrumented code";
  fast.set_entry(0, &code_);
  fast.rate(0).set(Rate::sampled(3, 32));
  EXPECT_TRUE(refuses()) << "another rate";
  fast.rate(0).set(schedule.rate);
  EXPECT_TRUE(refuses()) << "the same setting again is a later one";
  state().rate = fast.rate(0).load().word;
  state().flush_is_next = 1;
  EXPECT_TRUE(refuses()) << "a change is on its way";
  state().flush_is_next = 0;
  state().samples_left = 1;
  EXPECT_TRUE(refuses()) << "the last sample of a rung";
  state().samples_left = 0;
  context().sample_limit = context().samples_taken.load();
  EXPECT_TRUE(refuses()) << "it has taken all it may";
  context().sample_limit = 0;
  context().runtime = nullptr;
  EXPECT_TRUE(refuses()) << "another runtime's thread";
  context().runtime = this;
  EXPECT_FALSE(refuses());
}

}  // namespace
}  // namespace uptier::sampler::fast_sample_test
