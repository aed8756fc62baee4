// Frames of old optimized code are called back at the headers of long loops, and go on in newer
// code.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "jit/code/poll_words.h"
#include "jit/opt/poll_loops.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::osr_out_test {
namespace {

using jit::PollRun;
using jit::PollWords;

// One long call: @main's loop calls @one for the first half of its rounds, then @two.
constexpr const char* kPhases = R"(
func @one(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 3
  v2 = add.i64 v0, v1
  return v2
}

func @two(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 5
  v2 = mul.i64 v0, v1
  return v2
}

func @main(i64, f64) -> i64 {
b0(v0: i64, v1: f64):
  v2 = const.i64 0
  jump b1(v2, v2, v1)
b1(v3: i64, v4: i64, v5: f64):
  loop_header 0 pc=1 []
  v6 = lt_u.i64 v3, v0
  branch v6, b2, b6
b2:
  v7 = fadd.f64 v5, v1
  v8 = const.i64 1
  v9 = add.i64 v3, v8
  v10 = add.i64 v9, v9
  v11 = lt_u.i64 v10, v0
  branch v11, b3, b4
b3:
  v12 = call @one(v4)
  jump b5(v12)
b4:
  v13 = call @two(v4)
  jump b5(v13)
b5(v14: i64):
  jump b1(v9, v14, v7)
b6:
  v15 = trunc_sat_u.i64 v5
  v16 = add.i64 v15, v4
  return v16
}
)";

uint64_t answer_of(uint64_t n) {
  uint64_t sum = 0;
  double d = 0.5;
  for (uint64_t i = 0; i < n; ++i) {
    d += 0.5;
    sum = 2 * (i + 1) < n ? sum + 3 : sum * 5;
  }
  return sum + static_cast<uint64_t>(d);
}

uint64_t bits_of(double d) { return std::bit_cast<uint64_t>(d); }

Options at_once(const char* osr_out) {
  return options({{"policy", "always"},
                  {"workers", "0"},
                  {"inlining", "off"},
                  {"count_optimized", "off"},
                  {"measure_rates", "off"},
                  {"loop_flush_first", "8"},
                  {"flush_first", "500"},
                  {"osr_out", osr_out}});
}

size_t osr_versions(const MethodReport& m) {
  return static_cast<size_t>(std::ranges::count_if(m.versions, [](const VersionReport& v) {
    return v.osr_loop.valid() && v.copy == Copy::kPlain;
  }));
}

size_t loop_copies(const MethodReport& m) {
  return static_cast<size_t>(std::ranges::count_if(m.versions, [](const VersionReport& v) {
    return v.osr_loop.valid() && v.copy == Copy::kInstrumented;
  }));
}

TEST(OsrOut, a_frame_follows_the_callees_that_come_into_service_while_it_runs) {
  constexpr uint64_t kRounds = 20'000;
  IrRuntime r(parse_or_die(kPhases), at_once("on"));
  ThreadScope scope(*r.runtime);
  EXPECT_EQ(r.call("main", {kRounds, bits_of(0.5)}).bits, answer_of(kRounds));
  MethodReport m = r.report_of("main");
  EXPECT_EQ(m.osr_entries, 1u);
  EXPECT_EQ(m.osr_outs, 2u) << "when @one was optimized, and when @two was";
  EXPECT_EQ(osr_versions(m), 3u);
  EXPECT_EQ(m.left, 0u) << "not by way of plainer code";
}

TEST(OsrOut, code_that_was_moved_is_as_new_as_it_was) {
  constexpr uint64_t kRounds = 20'000;
  Options o = at_once("on");
  o.stress = "relay=all";
  IrRuntime r(parse_or_die(kPhases), o);
  ThreadScope scope(*r.runtime);
  EXPECT_EQ(r.call("main", {kRounds, bits_of(0.5)}).bits, answer_of(kRounds));
  MethodReport m = r.report_of("main");
  EXPECT_GT(r.runtime->report().relay.bodies, 0u);
  EXPECT_EQ(m.osr_outs, 2u);
}

TEST(OsrOut, without_the_option_it_stays_where_it_is) {
  constexpr uint64_t kRounds = 20'000;
  IrRuntime r(parse_or_die(kPhases), at_once("off"));
  ThreadScope scope(*r.runtime);
  EXPECT_EQ(r.call("main", {kRounds, bits_of(0.5)}).bits, answer_of(kRounds));
  MethodReport m = r.report_of("main");
  EXPECT_EQ(m.osr_outs, 0u);
  EXPECT_EQ(osr_versions(m), 1u);
}

TEST(OsrOut, a_loop_gets_no_more_versions_than_a_method) {
  Options o = at_once("on");
  o.max_recompiles = 2;
  IrRuntime r(parse_or_die(kPhases), o);
  ThreadScope scope(*r.runtime);
  EXPECT_EQ(r.call("main", {20'000, bits_of(0.5)}).bits, answer_of(20'000));
  EXPECT_EQ(osr_versions(r.report_of("main")), 2u);
}

TEST(OsrOut, a_worker_in_the_background_moves_it_too) {
  // Grows until the worker finishes before the loop does.
  uint64_t rounds = 30'000'000, osr_outs = 0;
  for (; osr_outs == 0 && rounds < 10'000'000'000; rounds *= 4) {
    Options o = options({{"policy", "always"},
                         {"inlining", "off"},
                         {"count_optimized", "off"},
                         {"loop_flush_first", "8"}});
    IrRuntime r(parse_or_die(kPhases), o);
    ThreadScope scope(*r.runtime);
    EXPECT_EQ(r.call("main", {rounds, bits_of(0.5)}).bits, answer_of(rounds));
    osr_outs = r.report_of("main").osr_outs;
  }
  EXPECT_GE(osr_outs, 1u);
}

// Frame moves must compute every word they need: stale stack words are junk.
[[gnu::noinline]] void leave_junk_on_the_stack() {
  volatile uint64_t junk[8192];
  for (volatile uint64_t& word : junk) word = 0x7fff'0000'0000;
}

TEST(OsrOut, every_point_that_is_forced_moves_the_frame) {
  Options o = at_once("on");
  ASSERT_TRUE(o.set("stress", "osr_out=all").ok());
  IrRuntime r(parse_or_die(kPhases), o);
  ThreadScope scope(*r.runtime);
  leave_junk_on_the_stack();
  EXPECT_EQ(r.call("main", {2000, bits_of(0.5)}).bits, answer_of(2000));
  MethodReport m = r.report_of("main");
  EXPECT_EQ(m.osr_outs + m.left, stress_count(r.runtime->report(), "osr_out").forced);
  EXPECT_EQ(m.left, (m.osr_outs + m.left) / 3);
}

TEST(OsrOut, forced_at_every_header_it_changes_no_answer) {
  for (const char* stress :
       {"osr_out=all", "osr_out=every:2", "osr_out=random:0.3:7", "osr_out=all,guard=every:5"}) {
    Options o = at_once("on");
    ASSERT_TRUE(o.set("stress", stress).ok());
    IrRuntime r(parse_or_die(kPhases), o);
    ThreadScope scope(*r.runtime);
    EXPECT_EQ(r.call("main", {2000, bits_of(0.5)}).bits, answer_of(2000)) << stress;
    EXPECT_GT(r.report_of("main").osr_outs, 0u) << stress;
    EXPECT_GT(r.report_of("main").left, 0u) << stress;
    EXPECT_GT(loop_copies(r.report_of("main")), 0u) << stress;
  }
}

// ---- Loops that poll ----------------------------------------------------------------------------

constexpr const char* kLoops = R"(
func @leaf(i32) -> i32 {
b0(v0: i32):
  return v0
}

func @f(i32) -> i32 {
b0(v0: i32):
  jump b1
b1:
  loop_header 0 pc=1 []
  v1 = call @leaf(v0)
  branch v1, b1, b2
b2:
  loop_header 1 pc=2 []
  branch v0, b2, b3
b3:
  loop_header 2 pc=3 []
  branch v0, b4, b5
b4:
  v2 = call @leaf(v0)
  jump b5
b5:
  v3 = add.i32 v0, v0
  branch v3, b3, b6
b6:
  return v0
}
)";

TEST(OsrOut, loops_ask_whose_rounds_are_long) {
  jit::Module m = parse_or_die(kLoops);
  using Loops = std::vector<LoopId>;
  const jit::Function& f = m.functions[1];
  EXPECT_EQ(jit::loops_that_poll(f, {}, true), (Loops{LoopId(0), LoopId(1), LoopId(2)}));
  std::vector<uint64_t> seldom = {1, 10, 1000, 1000, 10, 1000, 1};
  std::vector<uint64_t> always = {1, 10, 1000, 1000, 1000, 1000, 1};
  EXPECT_EQ(jit::loops_that_poll(f, seldom, false), (Loops{LoopId(0)}));
  EXPECT_EQ(jit::loops_that_poll(f, always, false), (Loops{LoopId(0), LoopId(2)}));
  EXPECT_TRUE(jit::loops_that_poll(m.functions[0], {}, true).empty());
}

// ---- Poll words ---------------------------------------------------------------------------------

TEST(PollWords, words_are_0_and_come_back_with_their_owner) {
  alignas(4) std::array<uint8_t, 16> data = {};
  PollWords words{std::span<uint8_t>(data)};
  PollRun a = words.take(3);
  ASSERT_EQ(a.words().size(), 3u);
  EXPECT_TRUE(words.take(2).words().empty()) << "one is left";
  PollRun b = words.take(1);
  ASSERT_EQ(b.words().size(), 1u);
  EXPECT_TRUE(words.take(0).words().empty());
  a.words()[2].store(1);
  jit::PollWord* was = a.words().data();
  a = {};
  PollRun c = words.take(3);
  EXPECT_EQ(c.words().data(), was);
  EXPECT_EQ(c.words()[2], 0u);
}

}  // namespace
}  // namespace uptier::test::osr_out_test
