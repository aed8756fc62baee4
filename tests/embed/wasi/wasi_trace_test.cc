// The WASI calls of a program as events, like strace for guests.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/program_runs.h"
#include "tests/support/tool_dir.h"

namespace uptier::test::wasi_trace_test {
namespace {

using WasiTrace = ToolDir;

TEST_F(WasiTrace, each_call_has_its_arguments_and_its_result) {
  const RunResult r =
      in_dir("printf 'one\\ntwo\\n' | " UPTIER_TOOL " run --events e.jsonl " + wasm_path("cat"));
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.out, "one\ntwo\n");
  EXPECT_EQ(r.err, "");
  std::ifstream in(path("e.jsonl"));
  std::map<uint64_t, std::string> open;
  uint64_t written = 0, calls = 0;
  for (std::string line; std::getline(in, line);) {
    const auto j = nlohmann::json::parse(line);
    if (j["stream"] == "uptier") continue;  // events of the runtime: see runtime_stream_test.cc
    ASSERT_EQ(j["stream"], "wasi");
    ASSERT_EQ(j["kind"], "arguments");
    if (j["phase"] == "begin") {
      EXPECT_FALSE(j.contains("result"));
      open[j["instance"]] = j["text"];
      continue;
    }
    ++calls;
    EXPECT_EQ(open[j["instance"]], j["text"]);
    open.erase(j["instance"].get<uint64_t>());
    written += j["text"] == "fd_write" && j["arguments"][0] == 1 && j["result"] == 0 ? 1 : 0;
  }
  EXPECT_GT(calls, 2u);
  EXPECT_GT(written, 0u);
  EXPECT_TRUE(open.empty());
}

TEST_F(WasiTrace, the_last_call_of_a_program_that_exits_ends) {
  const RunResult r = in_dir(UPTIER_TOOL " run --events e.json " + wasm_path("mix"));
  EXPECT_EQ(r.out, expected_output("mix"));
  const auto j = nlohmann::json::parse(slurp(path("e.json")));
  for (const auto& e : j["traceEvents"]) {
    if (e["cat"] == "wasi") { EXPECT_EQ(e["ph"], "X") << e; }
  }
  EXPECT_FALSE(j["traceEvents"].empty());
}

TEST_F(WasiTrace, a_file_that_cannot_be_written_is_said) {
  const RunResult r = in_dir(UPTIER_TOOL " run --events /nowhere/e.json " + wasm_path("mix"));
  EXPECT_NE(r.err.find("/nowhere/e.json cannot be written"), r.err.npos) << r.err;
  EXPECT_EQ(r.out, expected_output("mix"));
}

}  // namespace
}  // namespace uptier::test::wasi_trace_test
