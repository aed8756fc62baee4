// Input and output of the tool: separate files for the results of a run, and stdin.
#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "test_paths.h"
#include "tests/support/program_runs.h"
#include "tests/support/tool_dir.h"

namespace uptier::test::cli_streams_test {
namespace {

using CliStreams = ToolDir;

TEST_F(CliStreams, each_thing_shown_has_a_file_of_its_own) {
  // An invalid profile causes a warning, on stderr only, and is not saved.
  write_text("notes.txt", "not a profile");
  const RunResult r = tool(
      "run --report=json --report-to r.json --loops=json --loops-to l.json --log --log-to log.txt "
      "--profile notes.txt " +
      wasm_path("mix"));
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.out, expected_output("mix"));
  EXPECT_NE(r.err.find("left alone"), std::string::npos) << r.err;
  std::istringstream lines(r.err);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line.substr(0, 18), "uptier: notes.txt:") << "warnings and nothing else";
  }
  const auto report = nlohmann::json::parse(slurp(path("r.json")), nullptr, false);
  ASSERT_TRUE(report.is_object()) << slurp(path("r.json"));
  EXPECT_GT(report["methods"].size(), 1u);
  const auto loops = nlohmann::json::parse(slurp(path("l.json")), nullptr, false);
  ASSERT_TRUE(loops.is_array()) << slurp(path("l.json"));
  EXPECT_GT(loops.size(), 0u);
  EXPECT_EQ(slurp(path("log.txt")), "log: 0 records, 0 lost\n");
}

TEST_F(CliStreams, file_alone_asks_for_what_goes_there) {
  const RunResult r = tool("run --report-to r --loops-to l.csv --loops=csv " + wasm_path("mix"));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(slurp(path("r")).substr(0, 6), "method");
  EXPECT_EQ(slurp(path("l.csv")).substr(0, 14), "function,loop,");
  // The file's old contents are gone, not overwritten in part.
  write_text("r", std::string(1 << 20, 'x'));
  EXPECT_EQ(tool("run --report-to r " + wasm_path("mix")).code, 0);
  EXPECT_EQ(slurp(path("r")).find('\0'), std::string::npos);
  EXPECT_LT(slurp(path("r")).size(), size_t{1} << 20);
}

TEST_F(CliStreams, descriptor_and_stdout_take_it_too) {
  const RunResult fd = in_dir(UPTIER_TOOL " run --report=json --report-to /dev/fd/3 " +
                              wasm_path("mix") + " 3>&1 >/dev/null | cat");
  EXPECT_TRUE(nlohmann::json::parse(fd.out, nullptr, false).is_object()) << fd.out << fd.err;
  const RunResult out = tool("run --report=json --report-to - " + wasm_path("mix"));
  EXPECT_EQ(out.out.substr(0, expected_output("mix").size()), expected_output("mix"));
  const std::string rest = out.out.substr(expected_output("mix").size());
  EXPECT_TRUE(nlohmann::json::parse(rest, nullptr, false).is_object()) << rest;
}

TEST_F(CliStreams, file_that_cannot_be_written_is_a_failure_but_not_the_programs) {
  const RunResult r = tool("run --report-to no/where " + wasm_path("mix"));
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.out, expected_output("mix"));
  EXPECT_NE(r.err.find("no/where"), std::string::npos) << r.err;
  const RunResult full = tool("run --report-to /dev/full " + wasm_path("mix"));
  EXPECT_EQ(full.code, 1);
  EXPECT_NE(full.err.find("/dev/full"), std::string::npos) << full.err;
}

TEST_F(CliStreams, module_comes_from_a_pipe_as_well) {
  const RunResult r = in_dir("cat " + wasm_path("mix") + " | " UPTIER_TOOL " run /dev/stdin");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, expected_output("mix"));
}

TEST_F(CliStreams, stdout_that_takes_nothing_fails_a_run_that_did_not) {
  write_text("add.wat", "(module (func (export \"one\") (result i32) i32.const 1))");
  ASSERT_EQ(in_dir("wat2wasm add.wat").code, 0);
  const RunResult r = in_dir(UPTIER_TOOL " run --invoke one add.wasm >/dev/full");
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("uptier: stdout: "), std::string::npos) << r.err;
}

TEST_F(CliStreams, one_file_does_not_take_two_things) {
  const RunResult r = tool("run --report-to a --loops-to a " + wasm_path("mix"));
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("--report-to and --loops-to both write to a"), std::string::npos) << r.err;
  EXPECT_EQ(tool("run --report-to a --trace a " + wasm_path("mix")).code, 2);
  EXPECT_EQ(tool("run --loops-to - --log-to - " + wasm_path("mix")).code, 2);
}

TEST_F(CliStreams, stdin_is_read_by_one_alone) {
  run("mix", "p.upf", "--trace t");
  for (const char* words : {"profile overlap - -", "profile diff - -", "profile check - p.upf -",
                            "profile merge -o sum - 3@-", "profile import -o sum - -",
                            "trace overlap - -", "report - --against - -o page.html"}) {
    const bool trace = std::string(words).starts_with("trace");
    const RunResult r = tool(std::string(words) + (trace ? " <t" : " <p.upf"));
    EXPECT_EQ(r.code, 2) << words << r.out << r.err;
    EXPECT_EQ(r.out, "") << words;
    EXPECT_EQ(r.err, "uptier: - stands for stdin, which can be read only once\n") << words;
  }
  EXPECT_NE(tool("profile overlap - p.upf <p.upf").out.find("overlap 1.000000"), std::string::npos);
  EXPECT_NE(tool("profile overlap p.upf - <p.upf").out.find("overlap 1.000000"), std::string::npos);
}

TEST_F(CliStreams, traces_come_by_stdin_and_pipes) {
  ASSERT_EQ(tool("run --policy=never --trace t " + wasm_path("mix")).code, 0);
  for (const char* words : {"dump", "validate", "profile", "profile --json"}) {
    const RunResult file = tool(std::string("trace ") + words + " t");
    for (const char* how : {" - <t", " /dev/stdin <t"}) {
      const RunResult in = tool(std::string("trace ") + words + how);
      EXPECT_EQ(in.code, 0) << words << in.err;
      const bool named = std::string(words) == "validate";
      EXPECT_EQ(named ? in.out.substr(in.out.find(": ")) : in.out,
                named ? file.out.substr(file.out.find(": ")) : file.out)
          << words << how;
    }
    const RunResult pipe = in_dir("cat t | " UPTIER_TOOL " trace " + std::string(words) + " -");
    EXPECT_EQ(pipe.code, 0) << words << pipe.err;
  }
  for (const char* words : {"- t <t", "t - <t"}) {
    EXPECT_EQ(tool(std::string("trace overlap ") + words).out.substr(0, 16), "overlap 1.000000");
  }
  const RunResult bad = in_dir("echo hello world | " UPTIER_TOOL " trace profile -");
  EXPECT_EQ(bad.code, 3);
  EXPECT_EQ(bad.err, "uptier: -: offset 0: the magic is not IIDB\n");
}

TEST_F(CliStreams, functions_of_ir_have_the_same_files) {
  write_text("f.uir",
             "func @f(i32) -> i32 {\nb0(v0: i32):\n  v1 = const.i32 2\n"
             "  v2 = mul.i32 v0, v1\n  return v2\n}\n");
  const RunResult r = tool("ir run --report=json --report-to r.json f.uir 21");
  EXPECT_EQ(r.out, "42\n") << r.err;
  EXPECT_EQ(r.err, "");
  EXPECT_TRUE(nlohmann::json::parse(slurp(path("r.json")), nullptr, false).is_object());
}

}  // namespace
}  // namespace uptier::test::cli_streams_test
