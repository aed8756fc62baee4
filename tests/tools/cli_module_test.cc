// The module given to `uptier run`: where it comes from, writers that change it meanwhile, and the
// arguments after it.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/tool_dir.h"
#include "tests/support/wasm_world.h"

namespace uptier::test::cli_module_test {
namespace {

using wasm::test::assemble;
using wasm::test::Bytes;

class CliModule : public ToolDir {
 protected:
  Bytes write_module(const std::string& name, const std::string& text) const {
    Bytes bytes = assemble(text);
    write_text(name, std::string(bytes.begin(), bytes.end()));
    return bytes;
  }
};

TEST_F(CliModule, comes_by_stdin_and_pipes) {
  const std::string want = expected_output("mix");
  EXPECT_EQ(tool("run - <" + wasm_path("mix")).out, want);
  EXPECT_EQ(in_dir("cat " + wasm_path("mix") + " | " UPTIER_TOOL " run -").out, want);
  write_module("add.wasm",
               "(module (func (export \"add\") (param i32 i32) (result i32)"
               " (i32.add (local.get 0) (local.get 1))))");
  EXPECT_EQ(tool("run --invoke add - 2 3 <add.wasm").out, "5\n");
  const RunResult none = tool("run - </dev/null");
  EXPECT_EQ(none.code, 125);
  EXPECT_NE(none.err.find("uptier: -: "), std::string::npos) << none.err;
}

// The limit forbids reserving eight GiB of address space.
TEST_F(CliModule, counts_of_code_that_checks_bounds_are_said_to_be_kept_apart) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "SKIPPED: needs a build without sanitizer, which reserves terabytes itself";
#endif
  const std::string run = "ulimit -v 4000000; " UPTIER_TOOL " run ";
  const std::string said = "counts are kept apart";
  RunResult profiled = in_dir(run + "--profile p.upf " + wasm_path("mix"));
  EXPECT_EQ(profiled.code, 0) << profiled.err;
  EXPECT_EQ(profiled.out, expected_output("mix"));
  EXPECT_NE(profiled.err.find(said), std::string::npos) << profiled.err;
  EXPECT_NE(in_dir(run + "--trace t " + wasm_path("mix")).err.find(said), std::string::npos);
  EXPECT_EQ(in_dir(run + wasm_path("mix")).err, "");
  EXPECT_EQ(tool("run --profile q.upf " + wasm_path("mix")).err, "");
  EXPECT_EQ(tool("run --explicit-bounds --profile r.upf " + wasm_path("mix")).err, "");
}

// Announces that it runs, waits for a byte, and exits with the result of a function that was not
// called before.
constexpr const char* kWaits = R"((module
  (import "wasi_snapshot_preview1" "fd_write" (func $w (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $r (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\01\00\00\00")
  (data (i32.const 16) "r")
  (func $late (result i32) (i32.const 7))
  (func (export "_start")
    (drop (call $w (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32)))
    (drop (call $r (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 32)))
    (call $exit (call $late)))))";

TEST_F(CliModule, is_what_it_was_when_it_was_validated) {
  for (const char* options : {"", "--lazy-validation", "--tier=optimized", "--profile p.upf"}) {
    const Bytes bytes = write_module("guest.wasm", kWaits);
    Bytes other = bytes;  // the same with another valid body of $late
    const Bytes seven{0x00, 0x41, 0x07, 0x0b}, nine{0x00, 0x41, 0x09, 0x0b};
    auto at = std::search(other.begin(), other.end(), seven.begin(), seven.end());
    ASSERT_NE(at, other.end());
    std::copy(nine.begin(), nine.end(), at);
    write_text("other.wasm", std::string(other.begin(), other.end()));
    for (const char* change : {"cat other.wasm 1<>guest.wasm >&0", ": >guest.wasm",
                               "dd if=other.wasm of=guest.wasm conv=notrunc 2>/dev/null"}) {
      write_module("guest.wasm", kWaits);
      const RunResult r =
          in_dir("rm -f in out; mkfifo in out; " UPTIER_TOOL " run " + std::string(options) +
                 " guest.wasm <in >out & exec 3>in 4<out; head -c 1 <&4 >/dev/null; " + change +
                 "; echo x >&3; wait $!; echo $?");
      EXPECT_EQ(r.out, "7\n") << options << "; " << change << "; " << r.err;
    }
  }
}

TEST_F(CliModule, option_behind_it_is_the_programs_and_told_of_where_that_is_a_slip) {
  write_module("deaf.wasm",
               "(module (func (export \"_start\")) (func (export \"f\") (param i32)))");
  const std::string usage = "usage: uptier run [OPTIONS] prog.wasm [ARGS...]";
  for (const char* option :
       {"--report", "--report=json", "--profile x.upf", "-O loops=on", "--help"}) {
    const RunResult r = tool("run deaf.wasm " + std::string(option));
    EXPECT_EQ(r.code, 0);
    EXPECT_NE(r.err.find(usage), std::string::npos) << option << r.err;
  }
  for (const char* other : {"", "report", "--reports", "-", "--"}) {
    EXPECT_EQ(tool("run deaf.wasm " + std::string(other)).err, "") << other;
  }
  const RunResult number = tool("run --invoke f deaf.wasm --report");
  EXPECT_EQ(number.code, 2);
  EXPECT_NE(number.err.find("before the module: uptier run [OPTIONS]"), std::string::npos);
  // A program that reads its arguments may interpret them in any way.
  write_module("hears.wasm", R"((module
    (import "wasi_snapshot_preview1" "args_get" (func (param i32 i32) (result i32)))
    (func (export "_start"))))");
  EXPECT_EQ(tool("run hears.wasm --report").err, "");
  // If such a program fails, the warning is printed.
  write_module("fails.wasm", R"((module
    (import "wasi_snapshot_preview1" "args_get" (func (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (func (export "_start") (call $exit (i32.const 9)))))");
  const RunResult failed = tool("run fails.wasm x --report");
  EXPECT_EQ(failed.code, 9);
  EXPECT_NE(failed.err.find("--report stands after fails.wasm, so it was passed to the program; " +
                            usage),
            std::string::npos)
      << failed.err;
  EXPECT_EQ(tool("run fails.wasm x").err, "");
  const RunResult help = tool("run --help");
  EXPECT_NE(help.out.find("uptier run [OPTIONS] prog.wasm [ARGS...]"), std::string::npos);
  EXPECT_NE(help.out.find("- for stdin"), std::string::npos);
}

TEST_F(CliModule, without_its_names_it_keeps_its_profile) {
  const char* named =
      "(module (func $hot (param i32) (result i32) (local i32)"
      " (loop (local.set 1 (i32.add (local.get 1) (local.get 0)))"
      " (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))) (local.get 1))"
      " (func $main (export \"main\") (param i32) (result i32) (local i32)"
      " (loop (local.set 1 (i32.add (local.get 1) (call $hot (i32.const 100))))"
      " (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))) (local.get 1)))";
  const Bytes with = write_module("named.wasm", named);
  // The name section is the last one.
  const std::string word = "name";
  auto at = std::find_end(with.begin(), with.end(), word.begin(), word.end());
  ASSERT_NE(at, with.end());
  write_text("plain.wasm", std::string(with.begin(), at - 3));
  const RunResult first = tool("run --interval=1 --profile p.upf --invoke main named.wasm 3000");
  EXPECT_EQ(first.code, 0) << first.err;
  const RunResult match = tool("profile match p.upf plain.wasm");
  EXPECT_EQ(match.out.substr(0, 48), "2 methods kept, 0 matched, 0 dropped; 0 of the m")
      << match.err;
  const RunResult again = tool("run --profile p.upf --report --invoke main plain.wasm 3000");
  EXPECT_EQ(again.out, first.out);
  EXPECT_NE(again.err.find("saved profile"), std::string::npos) << again.err;
  EXPECT_EQ(again.err.find("recovered"), std::string::npos) << again.err;
  // The code is edited too, so all function numbers have changed: methods are matched by code and
  // order.
  std::string edited = named;
  edited.replace(edited.find("(func $hot"), 10, "(func nop) (func $hot");
  edited.insert(edited.find(" (func $main"), " (func nop)");
  const Bytes more = write_module("edited.wasm", edited.c_str());
  at = std::find_end(more.begin(), more.end(), word.begin(), word.end());
  ASSERT_NE(at, more.end());
  write_text("bare.wasm", std::string(more.begin(), at - 3));
  EXPECT_EQ(tool("profile match -o q.upf p.upf bare.wasm").out.substr(0, 48),
            "2 methods kept, 0 matched, 0 dropped; 2 of the m");
  const nlohmann::json j = nlohmann::json::parse(tool("profile show --json q.upf").out);
  ASSERT_EQ(j["methods"].size(), 2u);
  EXPECT_EQ(j["methods"][0]["function_index"], 1);
  EXPECT_EQ(j["methods"][0]["name"], "hot");
  EXPECT_EQ(j["methods"][1]["function_index"], 3);
}

}  // namespace
}  // namespace uptier::test::cli_module_test
