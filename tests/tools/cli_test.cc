// The tool as a process: what it passes through to programs, and its exit codes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "test_paths.h"
#include "tests/support/golden.h"
#include "tests/support/program_runs.h"
#include "tests/support/wasm_world.h"
#include "uptier/profile.h"

namespace uptier::test::cli_test {
namespace {

// The files of a test, removed at its end.
class Cli : public testing::Test {
 protected:
  Cli() {
    char name[] = "/tmp/uptier-cli-XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~Cli() override { std::filesystem::remove_all(dir_); }

  std::string file(const std::string& name, const std::string& bytes = "") {
    std::string path = dir_ + "/" + name;
    if (!bytes.empty()) std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string assembled(const std::string& name, const std::string& text) {
    wasm::test::Bytes bytes = wasm::test::assemble(text);
    return file(name, std::string(bytes.begin(), bytes.end()));
  }
  std::string dir_;
};

// (func (export "div") (param i32 i32) (result i32) local.get 0 local.get 1 i32.div_s)
// (func (export "deep") call 1)
const std::string kSmall(
    "\0asm\1\0\0\0"
    "\x01\x0a\x02\x60\x02\x7f\x7f\x01\x7f\x60\0\0"
    "\x03\x03\x02\0\1"
    "\x07\x0e\x02\x03"
    "div\0\0\x04"
    "deep\0\1"
    "\x0a\x0e\x02\x07\0\x20\0\x20\x01\x6d\x0b\x04\0\x10\x01\x0b",
    57);

TEST_F(Cli, run_passes_stdin_stdout_and_arguments_through) {
  RunResult r = run_command("printf 'one\\ntwo\\n' | " UPTIER_TOOL " run " + wasm_path("cat"));
  EXPECT_EQ(r.out, "one\ntwo\n");
  EXPECT_EQ(r.code, 0);
}

TEST_F(Cli, wasi_program_sees_its_world_and_nothing_else) {
  std::string box = dir_ + "/box";
  std::filesystem::create_directory(box);
  std::string command = "run --dir " + box + "::/box --env 'UPTIER_GREETING=good day' ";
  RunResult r = run_tool(command + wasm_path("wasi") + " /box");
  EXPECT_EQ(r.code, 3);
  EXPECT_EQ(r.out, expected_output("wasi"));
  // A link that the host has made, to a directory outside.
  std::filesystem::create_directory_symlink("/etc", box + "/link");
  RunResult escape = run_tool(command + wasm_path("wasi") + " /box /box/link/hostname");
  EXPECT_EQ(escape.code, 3);
  EXPECT_NE(escape.out.find("outside refused: ok"), std::string::npos) << escape.out;
}

TEST_F(Cli, invoke_prints_results) {
  RunResult r = run_tool("run --invoke div " + file("small.wasm", kSmall) + " 42 -6");
  EXPECT_EQ(r.out, "-7\n") << r.err;
  EXPECT_EQ(r.code, 0);
}

// (import "env" "f" (func)) (func (export "ok")) (func (export "bad") call 0)
const std::string kImports(
    "\0asm\1\0\0\0"
    "\x01\x04\x01\x60\0\0"
    "\x02\x09\x01\3env\1f\0\0"
    "\x03\x03\x02\0\0"
    "\x07\x0c\x02\2ok\0\1\3bad\0\2"
    "\x0a\x09\x02\x02\0\x0b\x04\0\x10\0\x0b",
    55);

TEST_F(Cli, unknown_imports_trap_when_they_are_called_if_one_likes) {
  std::string module = file("imports.wasm", kImports);
  RunResult refused = run_tool("run --invoke ok " + module);
  EXPECT_EQ(refused.code, 125);
  EXPECT_NE(refused.err.find("unknown import: function \"env\".\"f\""), std::string::npos)
      << refused.err;
  EXPECT_EQ(run_tool("run --trap-unknown-imports --invoke ok " + module).code, 0);
  RunResult bad = run_tool("run --trap-unknown-imports --invoke bad " + module);
  EXPECT_EQ(bad.code, 134);
  EXPECT_NE(bad.err.find("call of an unknown import: \"env\".\"f\""), std::string::npos) << bad.err;
}

// A WASI library:
//   (func (export "_initialize") i32.const 42 global.set 0)
//   (func (export "get") (result i32) global.get 0)
//   (func (export "leave") i32.const 5 call $proc_exit)
const std::string kLibrary(
    "\0asm\1\0\0\0"
    "\x01\x0c\x03\x60\0\0\x60\0\x01\x7f\x60\x01\x7f\0"
    "\x02\x24\x01\x16wasi_snapshot_preview1\x09proc_exit\0\2"
    "\x03\x04\x03\0\1\0"
    "\x06\x06\x01\x7f\x01\x41\0\x0b"
    "\x07\x1d\x03\x0b_initialize\0\1\3get\0\2\5leave\0\3"
    "\x0a\x14\x03\x06\0\x41\x2a\x24\0\x0b\x04\0\x23\0\x0b\x06\0\x41\5\x10\0\x0b",
    127);

TEST_F(Cli, library_starts_itself_before_its_functions_are_called) {
  std::string module = file("library.wasm", kLibrary);
  RunResult r = run_tool("run --invoke get " + module);
  EXPECT_EQ(r.out, "42\n") << r.err;
  EXPECT_EQ(run_tool("run --invoke _initialize " + module).code, 0);
  EXPECT_EQ(run_tool("run --invoke leave " + module).code, 5) << "an exit is no trap";
  RunResult command = run_tool("run " + module);
  EXPECT_EQ(command.code, 125);
  EXPECT_NE(command.err.find("not a command"), std::string::npos) << command.err;
}

TEST_F(Cli, trap_says_what_and_where_and_exits_134) {
  RunResult r = run_tool("run --invoke div " + file("small.wasm", kSmall) + " 1 0");
  EXPECT_EQ(r.code, 134);
  EXPECT_NE(r.err.find("integer divide by zero at 0x"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("func[0]"), std::string::npos) << r.err;
  for (const char* tier : {"baseline", "instrumented", "optimized", "auto"}) {
    RunResult deep =
        run_tool(std::string("run --invoke deep --tier=") + tier + " " + file("small.wasm"));
    EXPECT_EQ(deep.code, 134) << tier;
    EXPECT_NE(deep.err.find("call stack exhausted"), std::string::npos) << deep.err;
    EXPECT_NE(deep.err.find("func[1]"), std::string::npos) << deep.err;
  }
}

TEST_F(Cli, more_methods_than_a_runtime_has_by_default_are_no_obstacle) {
  std::string functions = "(func (export \"_start\"))", elements;
  for (int i = 0; i < 70'000; ++i) {
    functions += "(func)";
    elements += " " + std::to_string(i);
  }
  // An unreferenced function has no method; a function in an element segment has one.
  std::string idle = assembled("idle.wasm", "(module " + functions + ")");
  std::string module = assembled("many.wasm", "(module " + functions + " (table 70000 funcref)" +
                                                  " (elem (i32.const 0)" + elements + "))");
  EXPECT_EQ(run_tool("run " + idle).code, 0);
  EXPECT_EQ(run_tool("run -O max_methods=1000 " + idle).code, 0);
  EXPECT_EQ(run_tool("run " + module).code, 0);
  RunResult told = run_tool("run -O max_methods=1000 " + module);
  EXPECT_EQ(told.code, 125);
  EXPECT_NE(told.err.find("max_methods = 1000"), std::string::npos) << told.err;
}

TEST_F(Cli, lazy_validation_runs_what_is_valid) {
  std::string module = assembled("half.wasm", R"((module (func (export "_start"))
    (func (export "bad") (result i32) i64.const 1)))");
  RunResult refused = run_tool("run " + module);
  EXPECT_EQ(refused.code, 125);
  EXPECT_EQ(run_tool("run --lazy-validation " + module).code, 0);
  RunResult trapped = run_tool("run --lazy-validation --invoke bad " + module);
  EXPECT_EQ(trapped.code, 134);
  size_t why = refused.err.find("at offset");
  ASSERT_NE(why, std::string::npos) << refused.err;
  std::string rule = refused.err.substr(why, refused.err.find('\n', why) - why);
  EXPECT_NE(trapped.err.find(rule), std::string::npos) << trapped.err;
}

TEST_F(Cli, refused_module_says_why_and_exits_125) {
  for (const std::string& bytes : {std::string("not wasm"), kSmall.substr(0, 40)}) {
    RunResult r = run_tool("run " + file("bad.wasm", bytes));
    EXPECT_EQ(r.code, 125);
    EXPECT_NE(r.err.find("bad.wasm"), std::string::npos) << r.err;
    EXPECT_EQ(r.out, "");
  }
  EXPECT_EQ(run_tool("run " + file("missing.wasm")).code, 125);
}

TEST_F(Cli, usage_errors_exit_2_and_help_exits_0) {
  for (const char* words : {"", "frobnicate", "run", "run --interval 0 x.wasm", "run --gap odd x",
                            "run --stress=osr x", "trace dump", "run -O nothing=1 x.wasm"}) {
    RunResult r = run_tool(words);
    EXPECT_EQ(r.code, 2) << words << "\n" << r.err;
    EXPECT_FALSE((r.err + r.out).empty()) << words;
  }
  for (const char* words :
       {"--help", "run --help", "trace --help", "trace dump --help", "trace profile --help",
        "ir --help", "ir run --help", "wast --help", "options --help"}) {
    RunResult r = run_tool(words);
    EXPECT_EQ(r.code, 0) << words;
    EXPECT_FALSE(r.out.empty()) << words;
  }
}

TEST_F(Cli, options_prints_every_row) {
  RunResult r = run_command("UPTIER_INTERVAL=77 " UPTIER_TOOL " options");
  for (const char* word :
       {"interval", "77", "flush_first", "code_budget", "UPTIER_STACK_RESERVE"}) {
    EXPECT_NE(r.out.find(word), std::string::npos) << word;
  }
}

TEST_F(Cli, report_is_text_or_json_on_stderr) {
  RunResult text = run_tool("run --report " + wasm_path("bytecode"));
  EXPECT_EQ(text.out, expected_output("bytecode"));
  for (const char* word : {"method", "calls", "samples", "decisions", "compile", "losses"}) {
    EXPECT_NE(text.err.find(word), std::string::npos) << word;
  }
  RunResult json = run_tool("run --report=json " + wasm_path("bytecode"));
  auto report = nlohmann::json::parse(json.err, nullptr, false);
  ASSERT_TRUE(report.is_object()) << json.err;
  EXPECT_GT(report["methods"].size(), 3u);
  EXPECT_GT(report["decisions"].size(), 0u);
}

TEST_F(Cli, trace_of_a_program_is_valid_and_no_cut_of_it_is) {
  std::string trace = file("t");
  RunResult r = run_tool("run --trace " + trace + " " + wasm_path("mix"));
  EXPECT_EQ(r.out, expected_output("mix"));
  EXPECT_EQ(run_tool("trace validate " + trace).code, 0);
  RunResult dump = run_tool("trace dump " + trace);
  EXPECT_EQ(dump.code, 0);
  EXPECT_NE(dump.out.find("flush"), std::string::npos);
  std::string bytes = slurp(trace);
  ASSERT_GT(bytes.size(), 1000u);
  for (size_t cut : {size_t{0}, size_t{15}, bytes.size() / 2, bytes.size() - 1}) {
    RunResult bad = run_tool("trace validate " + file("cut", bytes.substr(0, cut) + ""));
    EXPECT_TRUE(bad.code == 3 || (cut == 0 && bad.code != 0)) << cut;
  }
  bytes[bytes.size() / 2] ^= 1;
  RunResult bad = run_tool("trace validate " + file("flip", bytes));
  EXPECT_EQ(bad.code, 3);
  EXPECT_NE(bad.err.find("offset"), std::string::npos) << bad.err;
}

TEST_F(Cli, profile_of_a_trace_is_text_that_reads_back_or_json) {
  std::string trace = file("t");
  run_tool("run --policy=never --trace " + trace + " " + wasm_path("nbody"));
  RunResult text = run_tool("trace profile " + trace);
  EXPECT_EQ(text.code, 0);
  Result<Profile> profile = parse_profile(text.out);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_GT(profile->methods.size(), 0u);
  RunResult json = run_tool("trace profile --json " + trace);
  EXPECT_EQ(json.code, 0);
  auto j = nlohmann::json::parse(json.out, nullptr, false);
  ASSERT_TRUE(j.is_object()) << json.out;
  EXPECT_EQ(j["methods"].size(), profile->methods.size());
  EXPECT_EQ(j["truncated"], false);
  RunResult cut = run_tool("trace profile " + file("cut", slurp(trace).substr(0, 1000)));
  EXPECT_EQ(cut.code, 0);
  EXPECT_NE(cut.err.find("ends early"), std::string::npos) << cut.err;
  RunResult bad = run_tool("trace profile " + file("bad", "not a trace, but long enough for one"));
  EXPECT_EQ(bad.code, 3);
  EXPECT_NE(bad.err.find("offset 0"), std::string::npos) << bad.err;
  EXPECT_EQ(run_tool("trace profile " + file("missing")).code, 1);
}

TEST_F(Cli, overlap_of_a_trace_with_itself_is_one) {
  std::string trace = file("t");
  run_tool("run --policy=never --trace " + trace + " " + wasm_path("nbody"));
  RunResult r = run_tool("trace overlap " + trace + " " + trace);
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.out.substr(0, 16), "overlap 1.000000");
}

TEST_F(Cli, ir_commands_print_verify_and_run) {
  std::string good = file("f.uir",
                          "func @f(i32) -> i32 {\nb0(v0: i32):\n  v1 = const.i32 2\n"
                          "  v2 = mul.i32 v0, v1\n  return v2\n}\n");
  EXPECT_EQ(run_tool("ir verify " + good).code, 0);
  EXPECT_NE(run_tool("ir print " + good).out.find("mul.i32"), std::string::npos);
  EXPECT_EQ(run_tool("ir run " + good + " 21").out, "42\n");
  EXPECT_EQ(run_tool("ir run --interpret " + good + " 21").out, "42\n");
  EXPECT_EQ(run_tool("ir run --tier=optimized " + good + " 21").out, "42\n");
  RunResult bad = run_tool("ir verify " + file("g.uir", "func @f() -> i32 {\nb0:\n  nope\n}\n"));
  EXPECT_EQ(bad.code, 3);
  EXPECT_NE(bad.err.find("g.uir:3"), std::string::npos) << bad.err;
}

TEST_F(Cli, compile_shows_each_stage_of_a_function) {
  std::string source = std::string(UPTIER_SOURCE_DIR) + "/tests/ir/loops.uir";
  RunResult r = run_tool("compile " + source + " -f sum --dump=ir,passes,listing,probes,frames");
  EXPECT_EQ(r.code, 0) << r.err;
  expect_golden("compile_sum", r.out);
  EXPECT_EQ(run_tool("compile " + source + " -f nobody").code, 1);
  EXPECT_EQ(run_tool("compile " + source + " -f sum --dump=gossip").code, 2);
  EXPECT_EQ(run_tool("compile " + source).code, 2);
}

TEST_F(Cli, compile_shows_rows_of_lines_and_their_memory) {
  std::string module = wasm_path("nbody");
  RunResult r = run_tool("compile " + module + " -f main --dump=lines");
  EXPECT_EQ(r.code, 0) << r.err;
  unsigned rows = 0, bytes = 0;
  ASSERT_EQ(
      std::sscanf(r.out.c_str(), "== lines: offset, location; %u rows, %u bytes", &rows, &bytes), 2)
      << r.out;
  EXPECT_EQ(bytes, 12 * rows);
  EXPECT_EQ(std::ranges::count(r.out, '\n'), rows + 1);
  EXPECT_NE(r.out.find(" of body 1 (@"), std::string::npos) << "inlined bodies: " << r.out;
  // Addresses of the process differ from run to run.
  auto code_of = [&](const std::string& words) {
    const std::string out = run_tool("compile " + module + " -f main --dump=" + words).out;
    return std::regex_replace(out, std::regex("0x[0-9A-F]{11,}"), "ADDRESS");
  };
  for (const char* how : {"", " --instrumented", " --baseline", " --baseline --instrumented"}) {
    const std::string plain = code_of(std::string("listing") + how);
    const std::string rows = code_of(std::string("listing,lines") + how);
    EXPECT_TRUE(rows.starts_with(plain)) << "rows change the code" << how;
    EXPECT_NE(rows.find("== lines"), std::string::npos) << how;
  }
  auto rows_of = [&](const std::string& words) {
    auto j = nlohmann::json::parse(run_tool("compile --speed=json" + words + module).out, nullptr,
                                   false);
    return j.is_array() ? j[1].value("line_rows", 0) : -1;
  };
  EXPECT_EQ(rows_of(" "), 0);
  EXPECT_GT(rows_of(" --lines "), 100);
  EXPECT_EQ(run_tool("compile " + module + " -f main --lines").code, 2);
}

TEST_F(Cli, compile_takes_functions_of_modules_and_their_profiles) {
  std::string module = wasm_path("nbody"), trace = file("t");
  run_tool("run --tier=instrumented --trace " + trace + " " + module);
  RunResult plain = run_tool("compile " + module + " -f main --dump=listing,probes");
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(plain.out.find("executions"), std::string::npos);
  for (const char* how : {"", " --baseline", " --instrumented", " --baseline --instrumented"}) {
    RunResult r = run_tool("compile " + module + " -f main --profile " + trace + how);
    EXPECT_EQ(r.code, 0) << how << r.err;
    EXPECT_NE(r.out.find("site 1, 1 executions"), std::string::npos) << how << r.out;
    EXPECT_EQ(r.out.find("outside"), std::string::npos) << how << r.out;
  }
  EXPECT_EQ(run_tool("compile " + module + " -f main --profile " +
                     file("bad", "not a profile, nor a trace of one"))
                .code,
            3);
  auto j = nlohmann::json::parse(run_tool("compile --speed=json " + module).out, nullptr, false);
  ASSERT_TRUE(j.is_array() && j.size() == 2);
  EXPECT_EQ(j[1]["compiler"], "optimized");
  EXPECT_EQ(j[1]["failed"], 0);
  EXPECT_GT(j[1]["wasm_bytes"], 1000);
}

}  // namespace
}  // namespace uptier::test::cli_test
