// The stream `calc`: calls and collections of examples/calc, in every mode and on every way out of a
// call.
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "test_paths.h"
#include "tests/support/calc_runs.h"

#ifdef UPTIER_CALC

namespace uptier::test::calc_trace_test {
namespace {

using nlohmann::json;

struct Told {
  RunResult run;
  std::map<std::string, int> calls;  // by function
  int collections = 0;
  uint64_t found_dead = 0;  // bytes
  size_t deepest = 0;       // calls that were open at once
};

class CalcTrace : public Calc {
 protected:
  static RunResult run_traced(const std::string& out, const std::string& arguments) {
    const std::string folder = UPTIER_TRACING;
    return run_command("UPTIER_TRACE=1 UPTIER_TRACE_DISPATCHER=" + folder +
                       "/libuptier_trace_dispatcher.so UPTIER_TRACE_SUBSCRIBERS=" + folder +
                       "/libuptier_trace_jsonl.so=" + out + " " + UPTIER_CALC + " " + arguments);
  }
  // Runs a program with the jsonl tool. Checks that events nest: each end closes what began last.
  Told traced(const std::string& arguments) {
    const std::string out = dir_ + "/events";
    Told told;
    told.run = run_traced(out, arguments);
    std::ifstream in(out);
    std::vector<json> open;
    for (std::string line; std::getline(in, line);) {
      const json j = json::parse(line);
      EXPECT_EQ(j["stream"], "calc");
      if (j["phase"] == "begin") {
        open.push_back(j);
        told.deepest = std::max(told.deepest, open.size());
        if (j["kind"] == "function") ++told.calls[j["text"]];
        continue;
      }
      EXPECT_EQ(j["phase"], "end") << line;
      if (open.empty()) return ADD_FAILURE() << "nothing is open: " << line, told;
      EXPECT_EQ(open.back()["instance"], j["instance"]) << arguments << "\n" << line;
      EXPECT_LE(open.back()["ns"], j["ns"]) << line;
      if (j["kind"] == "arguments") {
        ++told.collections;
        told.found_dead += j["result"].get<uint64_t>();
        EXPECT_EQ(j["text"], "collect");
        EXPECT_LE(j["result"], j["arguments"][0]) << line;
      }
      open.pop_back();
    }
    EXPECT_TRUE(open.empty()) << arguments << ": " << open.size() << " have not ended";
    return told;
  }
};

constexpr const char* kFib = "fn fib(n) { if n < 2 { return n } return fib(n - 1) + fib(n - 2) }\n";

// Compiled or not, in whatever way frames change: 177 calls are told for fib(10), and all end.
TEST_F(CalcTrace, every_call_is_told_in_every_mode) {
  const std::string program =
      file(std::string(kFib) + "let s = 0\nfor i in 0..15 { s = s + fib(10) }\nprint(s)\n");
  for (const CalcMode& mode : kModes) {
    const Told told = traced(std::string(mode.flags) + " " + program);
    EXPECT_EQ(told.run.out, "825\n") << mode.name;
    EXPECT_EQ(told.run.err, "") << mode.name;
    EXPECT_EQ(told.run.code, 0) << mode.name;
    EXPECT_EQ(told.calls.at("fib"), 15 * 177) << mode.name;
    EXPECT_EQ(told.calls.size(), 2u) << "and the top level";
    EXPECT_GE(told.deepest, 11u) << mode.name;
  }
}

// Loops that change their tier in the middle of a call, and types that change there.
TEST_F(CalcTrace, calls_whose_frames_change_end_once) {
  for (const CalcMode& mode : kModes) {
    const Told told = traced(std::string(mode.flags) + " " + path_of("storm") + " 25");
    EXPECT_EQ(told.run.code, 0) << mode.name << told.run.err;
    EXPECT_EQ(told.run.out, run_calc("--interpret " + path_of("storm") + " 25").out) << mode.name;
    EXPECT_GT(told.calls.size(), 1u) << mode.name;
  }
}

TEST_F(CalcTrace, calls_that_an_error_drops_end_too) {
  const std::string program =
      file(std::string(kFib) +
           "fn deep(n) { if n == 0 { return fib(9) + nil } return deep(n - 1) }\n"
           "let s = 0\nfor i in 0..30 { s = s + fib(8) }\nprint(s)\n"
           "print(deep(20))\n");
  for (const CalcMode& mode : kModes) {
    const Told told = traced(std::string(mode.flags) + " " + program);
    EXPECT_EQ(told.run.out, "630\n") << mode.name;
    EXPECT_EQ(told.run.code, 1) << mode.name;
    EXPECT_EQ(told.calls.at("deep"), 21) << mode.name;
  }
}

TEST_F(CalcTrace, collections_are_told_with_their_bytes) {
  const Told told = traced("--report --collect=every:100 " + path_of("strings"));
  EXPECT_EQ(told.run.code, 0) << told.run.err;
  EXPECT_GT(told.collections, 2);
  EXPECT_GT(told.found_dead, 0u);
  const std::string counted = "collector: " + std::to_string(told.collections) + " collections, ";
  EXPECT_NE(told.run.err.find(counted), told.run.err.npos) << counted << told.run.err;
  EXPECT_EQ(traced("--interpret " + file("print(1)\n")).collections, 0);
}

TEST_F(CalcTrace, code_has_trace_points_only_if_a_tool_listens) {
  const std::string program = file(std::string(kFib) + "print(fib(20))\n");
  const RunResult plain = run_calc("--ir=fib " + program);
  EXPECT_NE(plain.err.find("func @fib"), plain.err.npos) << plain.err;
  EXPECT_EQ(plain.err.find("call_host @enter"), plain.err.npos) << plain.err;
  EXPECT_EQ(plain.err.find("call_host @leave"), plain.err.npos) << plain.err;
  const Told told = traced("--ir=fib " + program);
  EXPECT_NE(told.run.err.find("call_host @enter"), told.run.err.npos) << told.run.err;
  EXPECT_NE(told.run.err.find("call_host @leave"), told.run.err.npos) << told.run.err;
}

TEST_F(CalcTrace, lost_events_are_an_error) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "SKIPPED: there is no /dev/full here";
  const RunResult r = run_traced("/dev/full", file("print(1)\n"));
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.out, "1\n");
  EXPECT_NE(r.err.find(" events of the trace are lost\n"), r.err.npos) << r.err;
}

}  // namespace
}  // namespace uptier::test::calc_trace_test

#endif
