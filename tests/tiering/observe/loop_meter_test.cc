// Loops measured by a host's counter, single executions, and nests whose times add up.
#include <bit>
#include <map>

#include "tests/support/loop_timer_fixture.h"
#include "tests/support/runtime_host.h"
#include "uptier/uptier.h"

namespace uptier::test::loop_meter_test {
namespace {

// Counts the measurements: each reading advances the clock by a tick, so an execution takes one
// tick, plus two for each execution that is measured inside it.
struct Ticks {
  uint64_t now = 0;
  uint64_t begun = 0, ended = 0;

  static uint64_t begin(void* user) noexcept {
    auto& t = *static_cast<Ticks*>(user);
    ++t.begun;
    return ++t.now;
  }
  static uint64_t end(void* user, uint64_t stamp) noexcept {
    auto& t = *static_cast<Ticks*>(user);
    ++t.ended;
    volatile double clobbers = 1.5 * static_cast<double>(t.now);  // a meter may use vector
                                                                  // registers
    (void)clobbers;
    return ++t.now - stamp;
  }
  LoopMeter meter() { return {"ticks", begin, end, this}; }
};

// n rounds around m rounds around k rounds, with a live float.
constexpr const char* kNest = R"(
func @nest(i32, i32, i32, f64) -> f64 {
b0(v0: i32, v1: i32, v2: i32, v3: f64):
  v4 = const.i32 1
  jump b1(v0, v3)
b1(v5: i32, v6: f64):
  loop_header 0 pc=0 []
  jump b2(v1, v6)
b2(v7: i32, v8: f64):
  loop_header 1 pc=1 []
  jump b3(v2, v8)
b3(v9: i32, v10: f64):
  loop_header 2 pc=2 []
  v11 = fadd.f64 v10, v3
  v12 = sub.i32 v9, v4
  branch v12, b3(v12, v11), b4
b4:
  v13 = sub.i32 v7, v4
  branch v13, b2(v13, v11), b5
b5:
  v14 = sub.i32 v5, v4
  branch v14, b1(v14, v11), b6
b6:
  return v11
}
)";

Options timing() {
  return options({{"loops", "on"}, {"interval", "1"}, {"policy", "never"}, {"workers", "0"}});
}

uint64_t bits(double d) { return std::bit_cast<uint64_t>(d); }

std::map<uint32_t, LoopReport> run(IrRuntime& r, int calls) {
  ThreadScope attached(*r.runtime);
  for (int i = 0; i < calls; ++i) {
    Outcome o = r.call("nest", {4, 5, 6, bits(0.5)});
    EXPECT_EQ(o.bits, bits(4 * 5 * 6 * 0.5 + 0.5));
  }
  r.runtime->flush();
  std::map<uint32_t, LoopReport> loops;
  for (const LoopReport& l : r.runtime->loops()) loops[l.loop.index()] = l;
  return loops;
}

TEST(LoopMeter, loops_are_measured_by_the_hosts_counter) {
  Ticks ticks;
  IrRuntime r(parse_or_die(kNest), timing());
  ASSERT_TRUE(r.runtime->set_loop_meter(ticks.meter()).ok());
  r.runtime->keep_loop_executions(40);
  std::map<uint32_t, LoopReport> loops = run(r, 2000);
  ASSERT_EQ(loops.size(), 3u);
  EXPECT_GT(ticks.begun, 0u);
  for (const auto& [id, l] : loops) {
    EXPECT_EQ(l.unit, "ticks");
    EXPECT_EQ(l.share, 0) << "ticks are no part of a thread's time";
    ASSERT_TRUE(l.cycles) << id;
  }
  // Nothing is measured inside the innermost loop, so each execution takes one tick, apart from
  // rounding.
  EXPECT_NEAR(loops[2].cycles->total, loops[2].entries, 1e-3 * loops[2].entries);
  EXPECT_LE(loops[1].cycles->total, loops[0].cycles->total);
  EXPECT_LE(loops[2].cycles->total, loops[1].cycles->total);

  const std::vector<LoopExecution> each = r.runtime->loop_executions();
  ASSERT_EQ(each.size(), 40u);
  for (const LoopExecution& x : each) {
    EXPECT_EQ(x.method, r.method("nest"));
    EXPECT_EQ(x.thread, 1u);
    ASSERT_TRUE(loops.contains(x.loop.index()));
    EXPECT_EQ(x.start_offset, loops[x.loop.index()].start_offset);
    if (x.loop.index() == 2) { EXPECT_EQ(x.cycles, 1u); }
  }
  // Refused, although the thread has ended: once a thread has attached, loops are measured in the
  // unit of the first meter.
  EXPECT_EQ(r.runtime->set_loop_meter({}).error().code, ErrorCode::kInvalidArgument);
}

TEST(LoopMeter, half_a_meter_is_refused_and_none_is_cycles) {
  IrRuntime r(parse_or_die(kNest), timing());
  Ticks ticks;
  LoopMeter half = ticks.meter();
  half.end = nullptr;
  EXPECT_EQ(r.runtime->set_loop_meter(half).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(r.runtime->set_loop_meter(ticks.meter()).ok());
  ASSERT_TRUE(r.runtime->set_loop_meter({}).ok());
  EXPECT_EQ(run(r, 100)[0].unit, "cycles");
  EXPECT_EQ(ticks.begun, 0u);
  EXPECT_TRUE(r.runtime->loop_executions().empty());
}

// A short nest whose inner loops came out longer than the outer ones in each of 13 runs.
TEST(LoopMeter, no_loop_of_a_short_nest_takes_more_than_the_one_around_it) {
  for (int round = 0; round < 5; ++round) {
    IrRuntime r(parse_or_die(kNest), timing());
    std::map<uint32_t, LoopReport> loops = run(r, 5000);
    ASSERT_EQ(loops.size(), 3u);
    for (uint32_t inner = 1; inner < 3; ++inner) {
      ASSERT_TRUE(loops[inner].cycles && loops[inner - 1].cycles);
      EXPECT_LE(loops[inner].cycles->total, loops[inner - 1].cycles->total);
      EXPECT_GE(*loops[inner - 1].exclusive_cycles, 0);
      EXPECT_LE(loops[inner].cycles->low, loops[inner].cycles->total);
      EXPECT_GE(loops[inner].cycles->high, loops[inner].cycles->total);
    }
  }
}

class MeteredTimer : public LoopTimerTest {};

TEST_F(MeteredTimer, subtracts_nothing_of_what_the_host_says) {
  Ticks ticks;
  timer.set_costs({1000, 1000});
  timer.set_meter({Ticks::begin, Ticks::end, &ticks});
  sampler::LoopTimer::Execution first[2];
  timer.keep_first(first, 2);
  for (int i = 0; i < 3; ++i) {
    enter(a, 0, 100);
    enter(a, 1, 100);
    leave(a, 1, 100);
    leave(a, 0, 100);
  }
  EXPECT_EQ(a.loop(1)[sampler::kLoopCycles], a.timed(1));
  EXPECT_EQ(a.loop(0)[sampler::kLoopCycles], 3 * a.timed(0));
  EXPECT_EQ(a.loop(0)[sampler::kLoopExclusive], 2 * a.timed(0));
  EXPECT_EQ(timer.kept(), 2u);
  EXPECT_EQ(first[0].words, a.loop(1));
  EXPECT_EQ(first[0].cycles, 1u);
  EXPECT_EQ(first[1].words, a.loop(0));
  EXPECT_EQ(first[1].cycles, 3u);
}

}  // namespace
}  // namespace uptier::test::loop_meter_test
