// Loop probes: entries, iterations and times, however a loop is entered and left.
#include <thread>

#include "sampler/loop_pace.h"
#include "tests/support/site_probe.h"

namespace uptier::test::loop_probe_test {
namespace {

// Two inner loops side by side; one has a return, the other an exit out of the outer loop.
const char* kNest = R"(
func @nest(i32, i32) -> i64 {
b0(v0: i32, v1: i32):
  v2 = const.i64 0
  v3 = const.i32 1
  v4 = const.i32 0
  jump b1(v0, v2)
b1(v5: i32, v6: i64):
  loop_header 0 pc=0 []
  jump b2(v1, v6)
b2(v7: i32, v8: i64):
  loop_header 1 pc=1 []
  v9 = extend_s.i64 v7
  v10 = add.i64 v8, v9
  v11 = sub.i32 v7, v3
  v12 = gt_s.i32 v11, v4
  branch v12, b2(v11, v10), b3(v1, v10)
b3(v13: i32, v14: i64):
  loop_header 2 pc=2 []
  v15 = const.i32 77
  v16 = eq.i32 v13, v15
  branch v16, b7, b4
b4:
  v17 = const.i32 99
  v18 = eq.i32 v13, v17
  v19 = sub.i32 v13, v3
  v20 = gt_s.i32 v19, v4
  switch v18, [b5], b6
b5:
  branch v20, b3(v19, v14), b8
b6:
  v21 = mul.i64 v14, v14
  return v21
b7:
  return v14
b8:
  v22 = sub.i32 v5, v3
  v23 = gt_s.i32 v22, v4
  branch v23, b1(v22, v14), b9
b9:
  return v14
}
)";

TEST(LoopForest, nests_and_measures) {
  jit::Module module = parse(kNest);
  jit::LoopForest f = find_loop_forest(module.functions[0]);
  ASSERT_EQ(f.loops.size(), 3u);
  EXPECT_FALSE(f.loops[0].parent.valid());
  EXPECT_EQ(f.loops[0].height, 1u);
  EXPECT_EQ(f.loops[0].siblings, 0u);
  for (uint32_t inner : {1, 2}) {
    EXPECT_EQ(f.loops[inner].parent, LoopId(0));
    EXPECT_EQ(f.loops[inner].depth, 1u);
    EXPECT_EQ(f.loops[inner].height, 0u);
    EXPECT_EQ(f.loops[inner].siblings, 1u);
  }
  EXPECT_EQ(f.loops[0].blocks.size(), 6u);
  EXPECT_EQ(f.loops[1].blocks.size(), 1u);
  EXPECT_EQ(f.loops[2].blocks.size(), 3u);
  using Chosen = std::vector<bool>;
  EXPECT_EQ(select_loops(f, {}), (Chosen{false, false, false, false}));
  EXPECT_EQ(select_loops(f, {.loops = true}), (Chosen{true, true, true, false}));
  EXPECT_EQ(select_loops(f, {.function = true}), (Chosen{false, false, false, true}));
  EXPECT_EQ(select_loops(f, {.loops = true, .max_depth = 0}), (Chosen{true, false, false, false}));
  EXPECT_EQ(select_loops(f, {.loops = true, .min_height = 1}), (Chosen{true, false, false, false}));
  EXPECT_EQ(select_loops(f, {.loops = true, .siblings_only = true}),
            (Chosen{false, true, true, false}));
}

TEST(LoopProbes, entries_and_iterations_whatever_leaves_the_loop) {
  jit::Module module = parse(kNest);
  Probed p(module);
  for (uint64_t outer : {1, 2, 5}) {
    for (uint64_t inner : {1, 3, 77, 80, 99, 120}) p.run(0, {outer, inner});
  }
  p.check();
  EXPECT_EQ(p.timer.depth(), 0u);
  for (uint32_t l = 0; l <= 3; ++l) {
    auto words = p.loop(0, l);
    EXPECT_GE(words[2], 1u) << l;
    EXPECT_LT(words[2], 5u * sampler::LoopPace::kMostTimes) << l;  // the limit of timed executions
  }
}

TEST(LoopProbes, times_make_sense) {
  jit::Module module = parse(kNest);
  SiteProbeRequest r = everything();
  r.loops.records = sampler::LoopTimer::kEvery;
  Probed p(module, r);
  for (int i = 0; i < 20; ++i) p.run(0, {50, 76});
  p.check();
  auto outer = p.loop(0, 0), first = p.loop(0, 1), second = p.loop(0, 2), body = p.loop(0, 3);
  EXPECT_EQ(first[2], first[0]);
  EXPECT_EQ(first[3], first[1]);
  EXPECT_EQ(outer[3], outer[1]);
  EXPECT_GT(first[4], 0u);
  EXPECT_GE(outer[4], first[4] + second[4]);  // the inner loops' time is within the outer loop's
  EXPECT_EQ(outer[4] - outer[5], first[4] + second[4]);
  EXPECT_GE(body[4], outer[4]);
  EXPECT_EQ(body[4] - body[5], outer[4]);
  EXPECT_EQ(first[5], first[4]);
}

TEST(LoopProbes, the_code_tables_say_where_each_loop_lies) {
  jit::Module module = parse(kNest);
  Probed p(module);
  const auto& ranges = p.compiled.code(0, Copy::kInstrumented).tables().loop_ranges;
  ASSERT_EQ(ranges.size(), 4u);
  for (uint32_t l = 0; l < 4; ++l) {
    EXPECT_EQ(ranges[l].loop, l);
    EXPECT_LT(ranges[l].begin, ranges[l].end);
  }
  EXPECT_EQ(ranges[3].begin, 0u);
  EXPECT_LE(ranges[0].end, ranges[3].end);
  EXPECT_LE(ranges[0].begin, ranges[1].begin);
  EXPECT_LE(ranges[1].end, ranges[2].begin);
  EXPECT_LE(ranges[2].end, ranges[0].end);
  EXPECT_TRUE(p.compiled.code(0, Copy::kPlain).tables().loop_ranges.empty());
}

TEST(LoopProbes, rearming_times_again) {
  jit::Module module = parse(kNest);
  SiteProbeRequest r = everything();
  r.loops.records = 64;
  Probed p(module, r);
  uint64_t timed = 0;
  for (int flush = 0; flush < 3; ++flush) {
    for (int i = 0; i < 10'000; ++i) p.run(0, {2, 3});
    EXPECT_GE(p.loop(0, 1)[2], timed + 16);
    EXPECT_LT(p.loop(0, 1)[2], timed + 64 * sampler::LoopPace::kMostTimes);
    timed = p.loop(0, 1)[2];
    rearm_loops(p.compiled.plan(0), p.compiled.slab(0).data());
  }
}

TEST(LoopProbes, a_trap_leaves_nothing_that_is_credited_later) {
  jit::Module module = parse(R"(
func @f(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 1
  jump b1(v0)
b1(v2: i32):
  loop_header 0 pc=0 []
  v3 = const.i32 100
  v4 = div_s.i32 v3, v2
  v5 = sub.i32 v2, v1
  v6 = const.i32 50
  v7 = gt_s.i32 v5, v6
  v8 = const.i32 60
  v9 = lt_s.i32 v0, v8
  v10 = or.i32 v7, v9
  branch v10, b1(v5), b2
b2:
  return v4
}
)");
  SiteProbeRequest r = everything();
  r.loops.records = sampler::LoopTimer::kEvery;
  Probed p(module, r);
  for (int i = 0; i < 100; ++i) {
    p.run(0, {10});  // counts down to a division by zero
    p.run(0, {70});
  }
  p.check();
  EXPECT_EQ(p.loop(0, 0)[2], 100u);
  EXPECT_EQ(p.loop(0, 0)[3], 20u * 100);
  EXPECT_EQ(p.timer.losses().stale, 200u);
}

// Two threads run the same code, each with its own slab, timer and stack.
TEST(LoopProbes, threads_do_not_meet) {
  jit::Module module = parse(kNest);
  SiteProbeRequest r = everything();
  r.loops.records = sampler::LoopTimer::kEvery;
  Probed p(module, r);
  constexpr uint32_t kRuns = 300;
  std::vector<uint64_t> slab(p.compiled.slab(0).size());
  uint64_t stale = 1;
  std::thread other([&] {
    AttachedThread thread;
    sampler::LoopTimer timer;
    thread.context().loops = &timer;
    thread.method(0).slab = slab.data();
    thread.method(0).loop_countdown = -AttachedThread::kNever;
    for (uint32_t i = 0; i < kRuns; ++i) p.compiled.run(MethodId(0), {7, 40});
    stale = timer.losses().stale + timer.depth();
  });
  for (uint32_t i = 0; i < kRuns; ++i) p.run(0, {7, 40});
  other.join();
  p.check();
  EXPECT_EQ(stale, 0u);
  for (uint32_t l = 0; l <= 3; ++l) {
    auto mine = p.loop(0, l), its = loop_counts(p.compiled.plan(0), LoopId(l), slab);
    for (size_t w = 0; w < 4; ++w) EXPECT_EQ(mine[w], its[w]) << l << " " << w;
  }
}

TEST(LoopProbes, recursion_counts_what_is_whose) {
  jit::Module module = parse(R"(
func @f(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 1
  v2 = const.i32 3
  v3 = eqz.i32 v0
  v4 = const.i32 0
  branch v3, b2(v4), b1(v2, v4)
b1(v5: i32, v6: i32):
  loop_header 0 pc=0 []
  v7 = sub.i32 v0, v1
  v8 = call @f(v7)
  v9 = add.i32 v6, v8
  v10 = add.i32 v9, v1
  v11 = sub.i32 v5, v1
  branch v11, b1(v11, v10), b2(v10)
b2(v12: i32):
  return v12
}
)");
  SiteProbeRequest r = everything();
  r.loops.records = sampler::LoopTimer::kEvery;
  Probed p(module, r);
  for (uint64_t depth = 0; depth < 7; ++depth) p.run(0, {depth});
  p.check();
  auto words = p.loop(0, 0);
  EXPECT_EQ(words[2], words[0]);
  EXPECT_EQ(words[3], words[1]);
  auto body = p.loop(0, 1);
  EXPECT_EQ(body[2], body[0]);
  EXPECT_EQ(p.timer.losses().stale, 0u);
}

// ---- Changes of copies
// ---------------------------------------------------------------------------

// Executions that are not observed from entry to exit are not timed; all other counts stay right.
TEST(LoopProbes, bursts_never_time_what_they_saw_a_part_of) {
  jit::Module module = parse(kNest);
  Probed p(module, everything(), Use::kToAndFro);
  for (uint64_t inner : {1, 3, 77, 80, 99}) p.run(0, {5, inner});
  EXPECT_GT(p.compiled.transfers(), 100u);
  auto outer = p.loop(0, 0);
  EXPECT_EQ(outer[0], 0u);  // always entered from the plain copy
  EXPECT_EQ(outer[2], 0u);
  EXPECT_GT(p.loop(0, 1)[0], 0u);
  for (uint32_t l = 0; l < 3; ++l) {
    auto words = p.loop(0, l);
    const Oracle::Loop& o = p.oracle.loops[{0, l}];
    EXPECT_LE(words[0], o.entries);
    EXPECT_LE(words[1], o.iterations);
    EXPECT_EQ(words[2], 0u);  // each header changes copies
    EXPECT_EQ(words[3], 0u);
  }
}

TEST(LoopProbes, fast_paths_are_what_they_are_thought_to_be) {
  jit::Module nest = parse(kNest);
  SiteProbeRequest loops;
  loops.loops = {.loops = true, .records = 100};
  CodeMachine n;
  BaselineModule timed(n, nest, Use::kInstrumented, planner(loops, false));
  std::string text =
      listing_around(timed.code(0, Copy::kInstrumented), "mov r11, qword ptr fs:[*]\ninc", 6);
  EXPECT_NE(text.find(R"(mov r11, qword ptr [rbp-0x08]
inc qword ptr [r11]
dec qword ptr [r11+0x40]
js *
)"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace uptier::test::loop_probe_test
