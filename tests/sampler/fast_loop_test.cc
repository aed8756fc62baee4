// The fast paths of loops either do the same as the slow ones, or nothing.
#include <gtest/gtest.h>

#include <vector>

#include "sampler/fast_sample.h"
#include "sampler/schedule.h"
#include "tests/support/code_machine.h"

namespace uptier::test::fast_loop_test {
namespace {

using sampler::FastSampling;
using sampler::GapKind;
using sampler::LoopCell;
using sampler::LoopEvent;
using sampler::MethodState;
using sampler::Rate;
using sampler::Schedule;

constexpr uint32_t kMethod = 3, kLoops = 2, kLoop = 1;

const void* ask_plain(uint32_t method, uint32_t loop, void* frame, void* runtime);
const void* ask_instrumented(uint32_t method, uint32_t loop, void* frame, void* runtime);

// One thread in one method. The slow side of a check calls the routines, or only C++.
class Loops {
 public:
  Loops(CodeMachine& m, const Schedule& schedule, bool quick, uint64_t seed = 42)
      : schedule(schedule), fast(this, CodeMachine::kMethods, schedule), quick(quick), machine_(m) {
    context().runtime = this;
    context().random = seed;
    state() = MethodState();
    state().slab = slab.data();
    fast.add(kMethod);
    cells[kLoop].plain = &plain_code;
    cells[kLoop].instrumented = &copy_code;
    cells[kLoop].enter = 8;
    cells[kLoop].leave = 16;
    fast.set_loops(kMethod, cells);
    routines.emplace(CodeMachine::take(jit::Routines::create(
        *m.space, nullptr, nullptr, nullptr, nullptr, {}, {}, nullptr, nullptr,
        {&ask_plain, &ask_instrumented, this, fast.methods(), &sampler::uptier_begin_burst,
         &fast})));
  }
  sampler::ThreadContext& context() { return machine_.thread.context(); }
  MethodState& state() { return machine_.thread.method(kMethod); }

  // A frame of a copy arrives at the header; returns the copy in which it goes on.
  bool arrive(bool copy) {
    ++arrivals;
    bool due = copy ? ++state().loop_countdown >= 0 : --state().loop_countdown <= 0;
    return due ? event(copy) : copy;
  }
  bool event(bool copy) {
    ++events;
    if (!quick) return slow(copy);
    auto* routine = reinterpret_cast<jit::LoopSlow>(
        const_cast<void*>(copy ? routines->loop_instrumented() : routines->loop_plain()));
    return routine(kMethod, kLoop, nullptr, this) == &copy_code;
  }
  bool slow(bool copy) {
    ++asked;
    uint64_t bursts = state().bursts;
    Rate wanted = fast.rate(kMethod).load();
    LoopEvent e =
        copy ? loop_event_instrumented(state(), schedule, wanted, can_count, context().random)
             : loop_event_plain(state(), schedule, wanted, can_count, context().random);
    if (e.flush) flushes.push_back(arrivals);
    if (e.change) commit_rate(state(), schedule, wanted, can_count, context().random, e);
    if (e.widen) fast.rate(kMethod).widen(Rate{state().rate}, schedule.ladder);
    if (state().bursts != bursts) spend_sample(context());
    if (e.instrumented != copy) ++slab[e.instrumented ? 1 : 2];
    return e.instrumented;
  }

  const Schedule& schedule;
  FastSampling fast;
  bool quick;
  bool can_count = true;
  LoopCell cells[kLoops];
  std::optional<jit::Routines> routines;
  std::vector<uint64_t> slab = std::vector<uint64_t>(3);
  uint64_t arrivals = 0, events = 0, asked = 0;
  std::vector<uint64_t> flushes;
  char plain_code = 0, copy_code = 0;

 private:
  CodeMachine& machine_;
};

const void* answer(uint32_t method, uint32_t loop, void* runtime, bool copy) {
  EXPECT_EQ(method, kMethod);
  EXPECT_EQ(loop, kLoop);
  auto& l = *static_cast<Loops*>(runtime);
  return l.slow(copy) ? &l.copy_code : &l.plain_code;
}
const void* ask_plain(uint32_t method, uint32_t loop, void*, void* runtime) {
  return answer(method, loop, runtime, false);
}
const void* ask_instrumented(uint32_t method, uint32_t loop, void*, void* runtime) {
  return answer(method, loop, runtime, true);
}

// The copy after each arrival of two frames, one of which comes and goes in any copy.
struct Course {
  std::vector<bool> copies;
  std::vector<uint64_t> slab, flushes;
  uint64_t iterations = 0, bursts = 0, taken = 0, random = 0;
  bool operator==(const Course&) const = default;
};
Course course(Loops& l, uint64_t arrivals) {
  Course c;
  uint64_t random = 7, taken = l.context().samples_taken.load();
  bool frame = false, other = false;
  for (uint64_t n = 0; n < arrivals; ++n) {
    uint64_t draw = sampler::next_random(random);
    if (draw % 16 == 0) other = draw % 32 == 0;
    bool& runs = draw >> 60 == 0 ? other : frame;
    c.copies.push_back(runs = l.arrive(runs));
    if (sampler::iterations_so_far(l.state()) != l.arrivals) ADD_FAILURE() << "arrival " << n;
  }
  c.slab = l.slab;
  c.flushes = l.flushes;
  c.iterations = sampler::iterations_so_far(l.state());
  c.bursts = l.state().bursts;
  c.taken = l.context().samples_taken.load() - taken;
  c.random = l.context().random;
  return c;
}

TEST(FastLoops, take_the_same_course_as_the_slow_path) {
  CodeMachine m;
  for (GapKind kind : {GapKind::kRandom, GapKind::kFixed, GapKind::kPrime}) {
    for (uint32_t interval : {1u, 2u, 7u, 16u, 64u, 3000u}) {
      for (uint32_t burst : {1u, 8u, 32u}) {
        Schedule schedule = Schedule::make(kind, interval, burst);
        schedule.loop_flush_first = 1000;
        Loops slow(m, schedule, false);
        Course expected = course(slow, 300'000);
        Loops quick(m, schedule, true);
        Course found = course(quick, 300'000);
        ASSERT_TRUE(found == expected) << interval << " " << burst;
        EXPECT_EQ(quick.events, slow.events);
        // At an interval of 2, every other burst follows directly after another. Wide stretches
        // have parts.
        if (interval < 3 || interval > 100) continue;
        EXPECT_LT(quick.asked * 4, quick.events) << interval << " " << burst;
      }
    }
  }
}

TEST(FastLoops, leave_long_stretches_in_parts) {
  CodeMachine m;
  Schedule schedule = Schedule::make(GapKind::kFixed, 3000, 32);
  schedule.loop_flush_first = uint64_t{1} << 40;
  Loops slow(m, schedule, false);
  Course expected = course(slow, 400'000);
  Loops quick(m, schedule, true);
  EXPECT_TRUE(course(quick, 400'000) == expected);
  EXPECT_EQ(quick.events, slow.events);
}

TEST(FastLoops, take_the_same_course_while_rates_change) {
  CodeMachine m;
  Schedule schedule = Schedule::make(GapKind::kRandom, 16, 8);
  schedule.loop_flush_first = 1000;
  auto run = [&](bool quick) {
    Loops l(m, schedule, quick);
    l.fast.rate(kMethod).set(Rate::decaying(0, 6, 8));
    Course all;
    uint64_t random = 5;
    for (int n = 0; n < 100; ++n) {
      Course c = course(l, sampler::next_random(random) % 4000);
      all.copies.insert(all.copies.end(), c.copies.begin(), c.copies.end());
      all.random ^= c.random;
      all.bursts = c.bursts;
      all.slab = c.slab;
      auto rung = static_cast<uint32_t>(sampler::next_random(random) % 6);
      l.fast.rate(kMethod).set(n % 7 == 0 ? Rate::decaying(rung, 6, 8) : Rate::sampled(rung, 8));
      l.can_count = n % 9 != 0;
      l.fast.set_loops(kMethod, l.can_count ? l.cells : nullptr);
    }
    return all;
  };
  EXPECT_TRUE(run(true) == run(false));
}

TEST(FastLoops, ask_for_everything_else_and_change_nothing_before) {
  CodeMachine m;
  Schedule schedule = Schedule::make(GapKind::kFixed, 4, 8);
  Loops l(m, schedule, true);
  auto asks = [&](bool copy) {
    uint64_t asked = l.asked;
    MethodState before = l.state();
    l.event(copy);
    l.state() = before;
    return l.asked != asked;
  };
  bool copy = false;
  while (!(copy = l.arrive(copy))) {}
  MethodState burst = l.state();
  while ((copy = l.arrive(copy))) {}
  while (l.state().loop_countdown > 1) l.arrive(false);
  --l.state().loop_countdown;
  const MethodState due = l.state();
  EXPECT_FALSE(asks(false));
  l.fast.set_loops(kMethod, nullptr);
  EXPECT_TRUE(asks(false)) << "no cells";
  l.fast.set_loops(kMethod, l.cells);
  l.state().next_loop_flush = l.state().iterations + static_cast<uint64_t>(due.loop_gap);
  EXPECT_TRUE(asks(false)) << "a flush is due too";
  l.state() = due;
  l.state().loop_left = 5;
  EXPECT_TRUE(asks(false)) << "a part only";
  l.state() = due;
  l.state().slab = nullptr;
  l.can_count = false;
  EXPECT_TRUE(asks(false)) << "no slab";
  l.can_count = true;
  l.state() = due;
  l.state().samples_left = 1;
  EXPECT_TRUE(asks(false)) << "the last sample of a rung";
  l.state() = due;
  l.context().sample_limit = l.context().samples_taken.load();
  EXPECT_TRUE(asks(false)) << "it has taken all it may";
  l.context().sample_limit = 0;
  l.context().runtime = nullptr;
  EXPECT_TRUE(asks(false)) << "another runtime's thread";
  l.context().runtime = &l;
  l.fast.rate(kMethod).set(Rate::sampled(3, 8));
  EXPECT_TRUE(asks(false)) << "another rate";
  l.state().rate = l.fast.rate(kMethod).load().word;
  EXPECT_FALSE(asks(false));

  l.state() = burst;
  l.state().loop_countdown = 0;
  EXPECT_FALSE(asks(true)) << "the end of a burst";
  l.state().behind.length = 0;
  EXPECT_TRUE(asks(true)) << "more than a stretch follows";
  l.state() = burst;
  l.state().loop_countdown = 0;
  l.context().runtime = nullptr;
  EXPECT_TRUE(asks(true)) << "another runtime's thread";
  l.context().runtime = &l;
  l.fast.set_loops(kMethod, nullptr);
  EXPECT_TRUE(asks(true)) << "no cells";
}

TEST(FastLoops, time_one_burst_in_32) {
  CodeMachine m;
  Schedule schedule = Schedule::make(GapKind::kFixed, 4, 8);
  Loops l(m, schedule, true);
  course(l, 400'000);
  ASSERT_GT(l.state().bursts, 10'000u);
  // All except the few that were interrupted.
  EXPECT_NEAR(static_cast<double>(l.fast.timed(sampler::CostKind::kLoop).timed),
              static_cast<double>(l.state().bursts) / 32, 30);
}

}  // namespace
}  // namespace uptier::test::fast_loop_test
