// Files of `uptier run --events FILE.json`, and of calc, obey the rules of their format.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program_runs.h"
#include "tests/support/tool_dir.h"
#include "tests/support/trace_file_check.h"

namespace uptier::test::trace_file_test {
namespace {

using nlohmann::json;

json slice(const char* name, double ts, double dur, int tid, int instance) {
  return {{"ph", "X"},  {"name", name}, {"cat", "c"}, {"ts", ts},
          {"dur", dur}, {"pid", 1},     {"tid", tid}, {"args", {{"instance", instance}}}};
}
json end_of(const char* phase, const char* name, double ts, int tid,
            const json& more = json::object()) {
  json e = {{"ph", phase}, {"name", name}, {"cat", "c"}, {"ts", ts},
            {"pid", 1},    {"tid", tid},   {"id", 9}};
  e.update(more);
  return e;
}

// One event of each phase; the numbers are their places.
json good() {
  return {{"traceEvents",
           {slice("outer", 10, 10, 1, 1),
            slice("inner", 12, 8, 1, 2),
            slice("apart", 20, 0.001, 1, 3),
            slice("other", 15, 10, 2, 4),
            end_of("b", "pair", 11, 1, {{"args", {{"instance", 5}}}}),
            end_of("e", "pair", 30, 2),
            end_of("s", "flow", 19.999, 1),
            end_of("f", "flow", 20, 1, {{"bp", "e"}}),
            {{"ph", "i"}, {"name", "mark"}, {"cat", "c"}, {"ts", 1}, {"pid", 1}, {"tid", 1}}}}};
}

TEST(TraceFileCheck, takes_a_good_file_and_finds_each_fault) {
  const TraceFileCheck fine(good());
  EXPECT_EQ(fine.faults(), std::vector<std::string>());
  EXPECT_EQ(fine.slices(), 4u);
  EXPECT_EQ(fine.pairs(), 1u);
  EXPECT_EQ(fine.flows(), 1u);
  EXPECT_EQ(fine.marks(), 1u);
  const struct {
    const char* fault;
    std::function<void(json&)> damage;
  } cases[] = {
      {"no traceEvents", [](json& j) { j.erase("traceEvents"); }},
      {"no name", [](json& j) { j["traceEvents"][0]["name"] = ""; }},
      {"no place", [](json& j) { j["traceEvents"][8].erase("tid"); }},
      {"no duration", [](json& j) { j["traceEvents"][0]["dur"] = 0; }},
      {"unknown phase", [](json& j) { j["traceEvents"][8]["ph"] = "?"; }},
      {"no instance", [](json& j) { j["traceEvents"][0].erase("args"); }},
      {"an instance twice", [](json& j) { j["traceEvents"][0]["args"]["instance"] = 5; }},
      {"crosses", [](json& j) { j["traceEvents"][1]["dur"] = 8.001; }},
      {"crosses", [](json& j) { j["traceEvents"][1]["ph"] = "B"; }},
      {"half a pair", [](json& j) { j["traceEvents"].erase(5); }},
      {"half a pair", [](json& j) { j["traceEvents"].push_back(j["traceEvents"][5]); }},
      {"a pair of two names", [](json& j) { j["traceEvents"][5]["cat"] = "d"; }},
      {"a pair that ends before it begins", [](json& j) { j["traceEvents"][5]["ts"] = 10; }},
      {"no id", [](json& j) { j["traceEvents"][4].erase("id"); }},
      {"half a flow", [](json& j) { j["traceEvents"].erase(6); }},
      {"a flow that ends before it begins", [](json& j) { j["traceEvents"][7]["ts"] = 15; }},
      {"a flow outside of all slices", [](json& j) { j["traceEvents"][7]["ts"] = 20.001; }},
      {"a flow outside of all slices", [](json& j) { j["traceEvents"][6]["tid"] = 3; }},
      {"a flow to the next slice", [](json& j) { j["traceEvents"][7].erase("bp"); }}};
  for (const auto& c : cases) {
    json bad = good();
    c.damage(bad);
    const TraceFileCheck found(bad);
    ASSERT_FALSE(found.faults().empty()) << c.fault;
    EXPECT_TRUE(found.faults()[0].starts_with(c.fault)) << found.faults()[0];
  }
}

class TraceFile : public ToolDir {
 protected:
  TraceFileCheck checked() const {
    const TraceFileCheck c(json::parse(slurp(path("e.json"))));
    for (const std::string& fault : c.faults()) ADD_FAILURE() << fault;
    return c;
  }
};

TEST_F(TraceFile, examples_nest_pair_and_flow_in_every_mode) {
  for (const char* mode :
       {"", "-O workers=0", "--policy=always -O flush_first=1", "--interval=1",
        "--stress=osr=every:3,osr_out=every:5", "--stress=copy=every:3,guard=every:50",
        "--stress=slow=from:2,values=all", "--stress=flip=every:2,delay=all",
        "--profile p.upf --stress=relay=all"}) {
    for (const Program& p : programs()) {
      const std::string words =
          std::string("run ") + mode + " --events e.json " + wasm_path(p.name);
      SCOPED_TRACE(words);
      const RunResult r = tool(words);
      EXPECT_EQ(r.out, expected_output(p.name)) << r.err;
      const TraceFileCheck c = checked();
      EXPECT_GT(c.slices(), 20u);
      EXPECT_GT(c.flows(), 0u);
      EXPECT_GT(c.marks(), 0u);
      EXPECT_EQ(c.open(), 0u);
    }
  }
}

// A guest's exit in a host call, and a trap in the middle of the guest.
TEST_F(TraceFile, runs_that_end_early_are_whole) {
  for (const char* words : {"--fuel 2000", "--timeout 0.05"}) {
    SCOPED_TRACE(words);
    const RunResult r = tool(std::string("run ") + words + " --events e.json " +
                             wasm_path("bytecode") + " 100000000");
    EXPECT_NE(r.code, 0);
    EXPECT_GT(checked().slices(), 5u);
  }
}

TEST_F(TraceFile, calls_of_calc_nest) {
  const std::string folder = UPTIER_TRACING;
  const RunResult r =
      in_dir("UPTIER_TRACE=1 UPTIER_TRACE_DISPATCHER=" + folder +
             "/libuptier_trace_dispatcher.so UPTIER_TRACE_SUBSCRIBERS=" + folder +
             "/libuptier_trace_perfetto.so=e.json " UPTIER_CALC
             " --collect=every:100 " UPTIER_SOURCE_DIR "/examples/calc/programs/strings.calc");
  EXPECT_EQ(r.code, 0) << r.err;
  const TraceFileCheck c = checked();
  EXPECT_GT(c.slices(), 300u);
  EXPECT_EQ(c.open(), 0u);
}

}  // namespace
}  // namespace uptier::test::trace_file_test
