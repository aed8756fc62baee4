// The time of loops: the table, the numbers of the runtime, and the command.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/support/golden.h"
#include "tests/support/program_runs.h"
#include "tests/support/runtime_host.h"
#include "tools/loop_table.h"

namespace uptier::test::loop_report_test {
namespace {

using nlohmann::json;

std::vector<LoopReport> sample_loops() {
  LoopReport outer;
  outer.method = MethodId(3);
  outer.key = {0xa1, 7};
  outer.name = "a_name_that_is_longer, by far, than its \"column\"";
  outer.loop = LoopId(0);
  outer.height = 1;
  outer.location = 0x1234;
  outer.start_offset = 0x30;
  outer.end_offset = 0x200;
  outer.entries = 2;
  outer.iterations = 200;
  outer.timed = 2;
  outer.cycles = Estimate{1'000'000, 1'000'000, 1'000'000};
  outer.exclusive_cycles = 250'000;
  outer.share = 0.625;
  LoopReport inner = outer;
  inner.loop = LoopId(1);
  inner.parent = LoopId(0);
  inner.depth = 1;
  inner.height = 0;
  inner.location.reset();
  inner.start_offset = 0x58;
  inner.end_offset = 0x1e0;
  inner.entries = 200;
  inner.iterations = 123'456'789;
  inner.timed = 100;
  inner.cycles = Estimate{750'000, 700'000, 800'000};
  inner.exclusive_cycles = 750'000;
  inner.share = 0.46875;
  LoopReport body;
  body.name = "body\x1b[31m";
  body.start_offset = 0;
  body.end_offset = 0x10;
  body.entries = 5;
  body.iterations = 5;
  LoopReport never = inner;
  never.entries = never.iterations = 0;
  never.timed = 0;
  return {outer, inner, body, never};
}

TEST(LoopTable, text_is_for_people) {
  expect_golden("loops_text", tools::loops_text(sample_loops()));
}

TEST(LoopTable, what_all_executions_took_stands_beside_what_was_extrapolated) {
  std::vector<LoopReport> loops = sample_loops();
  loops[1].exact_cycles = 740'000;
  expect_golden("loops_dual_text", tools::loops_text(loops));
  json j = json::parse(tools::loops_json(loops));
  EXPECT_EQ(j[1]["exact_cycles"], 740'000);
  EXPECT_NEAR(j[1]["error"].get<double>(), 750.0 / 740 - 1, 1e-12);
  EXPECT_EQ(j[0]["exact_cycles"], nullptr);
  EXPECT_EQ(j[0]["error"], nullptr);
}

TEST(LoopTable, json_has_every_number_and_null_for_what_is_not_known) {
  json j = json::parse(tools::loops_json(sample_loops()));
  ASSERT_EQ(j.size(), 3u);
  EXPECT_EQ(j[0]["function"], sample_loops()[0].name);
  EXPECT_EQ(j[0]["loop"], 0);
  EXPECT_EQ(j[0]["parent"], nullptr);
  EXPECT_EQ(j[0]["location"], 0x1234);
  EXPECT_EQ(j[1]["parent"], 0);
  EXPECT_EQ(j[1]["depth"], 1);
  EXPECT_EQ(j[1]["start_offset"], 0x58);
  EXPECT_EQ(j[1]["end_offset"], 0x1e0);
  EXPECT_EQ(j[1]["cycles"], 750'000);
  EXPECT_EQ(j[1]["cycles_low"], 700'000);
  EXPECT_EQ(j[1]["cycles_high"], 800'000);
  EXPECT_EQ(j[1]["exclusive_cycles"], 750'000);
  EXPECT_EQ(j[1]["entries"], 200);
  EXPECT_EQ(j[1]["iterations"], 123'456'789);
  EXPECT_EQ(j[1]["timed"], 100);
  EXPECT_EQ(j[1]["share"], 0.46875);
  EXPECT_EQ(j[1]["location"], nullptr);
  EXPECT_EQ(j[2]["loop"], nullptr);
  EXPECT_EQ(j[2]["cycles"], nullptr);
  EXPECT_EQ(json::parse(tools::loops_json({})), json::array());
}

// Splits one line of CSV (RFC 4180).
std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out(1);
  bool quotes = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (quotes && i + 1 < line.size() && line[i + 1] == '"')
        out.back() += line[++i];
      else
        quotes = !quotes;
    } else if (line[i] == ',' && !quotes) {
      out.emplace_back();
    } else {
      out.back() += line[i];
    }
  }
  return out;
}

TEST(LoopTable, csv_has_the_same_numbers) {
  std::istringstream csv(tools::loops_csv(sample_loops()));
  json j = json::parse(tools::loops_json(sample_loops()));
  std::vector<std::string> head;
  size_t row = 0;
  for (std::string line; std::getline(csv, line);) {
    ASSERT_EQ(line.back(), '\r');
    line.pop_back();
    std::vector<std::string> cells = fields(line);
    if (head.empty()) {
      head = cells;
      continue;
    }
    ASSERT_EQ(cells.size(), head.size());
    EXPECT_EQ(cells[0], j[row]["function"]);
    for (size_t i = 1; i < head.size(); ++i) {
      const json& value = j[row][head[i]];
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      EXPECT_EQ(cells[i], value.is_null() ? "" : text) << head[i];
    }
    ++row;
  }
  EXPECT_EQ(row, j.size());
}

// @nest(n, m): n rounds that contain a loop of m rounds, and another one of 3 next to it.
const char* kNest = R"(
func @nest(i32, i32) -> i32 {
b0(v0: i32, v1: i32):
  v2 = const.i32 1
  v3 = const.i32 3
  jump b1(v0)
b1(v4: i32):
  loop_header 0 pc=0 []
  jump b2(v1)
b2(v5: i32):
  loop_header 1 pc=1 []
  v6 = sub.i32 v5, v2
  branch v6, b2(v6), b3(v3)
b3(v7: i32):
  loop_header 2 pc=2 []
  v8 = sub.i32 v7, v2
  branch v8, b3(v8), b4
b4:
  v9 = sub.i32 v4, v2
  branch v9, b1(v9), b5
b5:
  return v4
}
)";

Options timing() {
  Options o;
  o.loops = true;
  o.interval = 1;
  o.policy = PolicyMode::kNever;
  o.workers = 0;
  return o;
}

std::map<uint32_t, LoopReport> loops_of(IrRuntime& r) {
  r.runtime->flush();
  std::map<uint32_t, LoopReport> out;
  for (const LoopReport& l : r.runtime->loops()) {
    out[l.loop.valid() ? l.loop.index() : UINT32_MAX] = l;
  }
  return out;
}

TEST(Loops, counts_nesting_and_offsets_of_a_module) {
  Options o = timing();
  o.loop_records = 25;  // times 8 if executions differ
  IrRuntime r(parse_or_die(kNest), o);
  ThreadScope attached(*r.runtime);
  constexpr uint64_t kCalls = 1000;
  for (uint64_t i = 0; i < kCalls; ++i) r.call("nest", {5, 7});
  auto loops = loops_of(r);
  ASSERT_EQ(loops.size(), 3u);
  const LoopReport &outer = loops[0], &first = loops[1], &second = loops[2];
  EXPECT_EQ(outer.name, "nest");
  EXPECT_EQ(outer.entries, kCalls);
  EXPECT_EQ(outer.iterations, 5 * kCalls);
  EXPECT_EQ(first.entries, 5 * kCalls);
  EXPECT_EQ(first.iterations, 35 * kCalls);
  EXPECT_EQ(second.entries, 5 * kCalls);
  EXPECT_EQ(second.iterations, 15 * kCalls);
  EXPECT_FALSE(outer.parent.valid());
  EXPECT_EQ(first.parent, LoopId(0));
  EXPECT_EQ(outer.depth, 0u);
  EXPECT_EQ(outer.height, 1u);
  EXPECT_EQ(second.depth, 1u);
  EXPECT_EQ(second.height, 0u);
  EXPECT_LT(outer.start_offset, first.start_offset);
  EXPECT_LT(first.start_offset, first.end_offset);
  EXPECT_LE(first.end_offset, second.start_offset);
  EXPECT_LE(second.end_offset, outer.end_offset);
  for (const auto& [id, l] : loops) {
    ASSERT_TRUE(l.cycles) << id;
    EXPECT_GT(l.cycles->total, 0) << id;
    EXPECT_LE(*l.exclusive_cycles, l.cycles->total) << id;
    EXPECT_GE(l.timed, 30u) << id;
    EXPECT_LT(static_cast<double>(l.timed), l.entries) << id;
  }
}

TEST(Loops, bodies_are_timed_and_depth_and_height_choose) {
  Options o = timing();
  o.loop_functions = true;
  o.loop_depth = 0;
  IrRuntime r(parse_or_die(kNest), o);
  for (int i = 0; i < 10; ++i) r.call("nest", {5, 7});
  auto loops = loops_of(r);
  ASSERT_EQ(loops.size(), 2u);
  EXPECT_EQ(loops[UINT32_MAX].entries, 10);
  EXPECT_EQ(loops[UINT32_MAX].start_offset, 0u);
  EXPECT_EQ(*loops[UINT32_MAX].exclusive_cycles,
            std::max(loops[UINT32_MAX].cycles->total - loops[0].cycles->total, 0.0));
  o.loop_functions = false;
  o.loop_depth = 1000;
  o.loop_siblings = true;
  IrRuntime siblings(parse_or_die(kNest), o);
  siblings.call("nest", {5, 7});
  auto two = loops_of(siblings);
  EXPECT_EQ(two.size(), 2u);
  EXPECT_EQ(two.count(0), 0u);
}

TEST(Loops, the_others_are_counted_where_only_some_are_to_be_timed) {
  Options o = timing();
  ASSERT_TRUE(o.set("time_loops", "0:0,0:2,7:1").ok());
  IrRuntime r(parse_or_die(kNest), o);
  for (int i = 0; i < 10; ++i) r.call("nest", {5, 7});
  auto loops = loops_of(r);
  ASSERT_EQ(loops.size(), 3u);
  EXPECT_EQ(loops[1].entries, 50);
  EXPECT_EQ(loops[1].timed, 0u);
  EXPECT_FALSE(loops[1].cycles);
  EXPECT_EQ(loops[0].timed, 10u);
  EXPECT_EQ(loops[2].timed, 50u);
  for (const char* bad : {"1", "1:", ":1", "1:2,", "a:b", "1:2:3", "1:2 "}) {
    EXPECT_FALSE(o.set("time_loops", bad).ok()) << bad;
  }
  EXPECT_TRUE(o.set("time_loops", "").ok());
}

// In dual mode each timed execution also has an extrapolated value to compare with.
TEST(Loops, dual_mode_times_every_execution_of_those_that_are_timed) {
  Options o = timing();
  o.loop_dual = true;
  o.loop_records = 8;
  ASSERT_TRUE(o.set("time_loops", "0:0,0:1").ok());
  IrRuntime r(parse_or_die(kNest), o);
  {
    ThreadScope attached(*r.runtime);
    for (int i = 0; i < 500; ++i) r.call("nest", {5, 7});
  }
  std::thread([&] {
    ThreadScope attached(*r.runtime);
    for (int i = 0; i < 500; ++i) r.call("nest", {5, 7});
  }).join();
  auto loops = loops_of(r);
  EXPECT_FALSE(loops[2].exact_cycles) << "only counted";
  for (uint32_t l : {0u, 1u}) {
    ASSERT_TRUE(loops[l].exact_cycles) << l;
    ASSERT_TRUE(loops[l].cycles) << l;
    EXPECT_LT(static_cast<double>(loops[l].timed), loops[l].entries) << l;
    EXPECT_GT(*loops[l].exact_cycles, 0) << l;
    EXPECT_GT(loops[l].cycles->total, 0) << l;
  }
}

TEST(Loops, none_without_the_option_and_none_before_a_call) {
  IrRuntime idle(parse_or_die(kNest), timing());
  EXPECT_TRUE(idle.runtime->loops().empty());
  Options o = timing();
  o.loops = false;
  IrRuntime r(parse_or_die(kNest), o);
  r.call("nest", {5, 7});
  EXPECT_TRUE(loops_of(r).empty());
}

json run_loops(const std::string& words) {
  RunResult r = run_tool("run --loops=json " + words + " " + wasm_path("mandel"));
  EXPECT_EQ(r.out, expected_output("mandel"));
  return json::parse(r.err, nullptr, false);
}

TEST(Loops, the_command_counts_the_same_each_time_and_its_numbers_fit) {
  std::map<std::pair<int, int>, std::vector<double>> counts;
  for (int run = 0; run < 2; ++run) {
    json loops = run_loops("");
    ASSERT_GT(loops.size(), 5u);
    size_t of_main = 0;
    for (const json& l : loops) {
      auto& c = counts[{l["function_index"], l["loop"]}];
      c.push_back(l["entries"]);
      c.push_back(l["iterations"]);
      EXPECT_LE(l["exclusive_cycles"], l["cycles"]);
      EXPECT_LT(l["start_offset"], l["end_offset"]);
      // One call of main contains all others, so its measured time is the total.
      if (l["function"] == "main") {
        ++of_main;
        EXPECT_LE(l["share"], 1);
      }
      EXPECT_NE(l["location"], nullptr);
    }
    EXPECT_GT(of_main, 0u);
  }
  for (const auto& [key, c] : counts) {
    ASSERT_EQ(c.size(), 4u);
    EXPECT_EQ(c[0], c[2]);
    EXPECT_EQ(c[1], c[3]);
  }
}

TEST(Loops, the_command_has_three_forms_and_can_be_told_otherwise) {
  RunResult text = run_tool("run --loops " + wasm_path("mandel"));
  EXPECT_EQ(text.err.substr(0, 8), "function") << text.err;
  RunResult csv = run_tool("run --loops=csv -O loop_depth=0 " + wasm_path("mandel"));
  EXPECT_EQ(csv.err.substr(0, 14), "function,loop,") << csv.err;
  const json outermost = run_loops("-O loop_depth=0");
  EXPECT_FALSE(outermost.empty());
  for (const json& l : outermost) EXPECT_EQ(l["depth"], 0);
  EXPECT_EQ(run_tool("run --loops=xml " + wasm_path("mandel")).code, 2);
  // An explicit setting wins over an implied one.
  EXPECT_EQ(run_loops("-O loops=off"), json::array());
}

}  // namespace
}  // namespace uptier::test::loop_report_test
