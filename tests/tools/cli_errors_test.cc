// Errors of the tool about files that are missing or of the wrong kind: the same exit code
// everywhere, and the file's name exactly once.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/program_runs.h"
#include "tests/support/tool_dir.h"

namespace uptier::test::cli_errors_test {
namespace {

size_t times(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

class CliErrors : public ToolDir {
 protected:
  // Runs the tool with a wrong file named `x`; checks the exit code, and that the name appears
  // once.
  void expect(const std::string& words, int code) const {
    const RunResult r = tool(words + " </dev/null");
    EXPECT_EQ(r.code, code) << words << "\n" << r.err;
    EXPECT_EQ(times(r.err, "x.file"), 1u) << words << "\n" << r.err;
    EXPECT_EQ(std::ranges::count(r.err, '\n'), 1) << words << "\n" << r.err;
  }
};

const char* const kTakeModules[] = {
    "profile match p.upf x.file",
    "report p.upf -o page.html --module x.file",
    "profile overlap p.upf p.upf --dot d --module x.file",
    "profile dot p.upf --module x.file",
    "profile dot p.upf --method main --module x.file",
    "profile import rows -o sum --module x.file",
    "profile export p.upf --format=wasm-hints -o out --module x.file",
    "compile x.file -f main",
    "compile x.file --speed"};

TEST_F(CliErrors, module_that_is_none_is_3_everywhere_and_125_where_it_was_to_run) {
  run("mix", "p.upf");
  tool("profile export p.upf --format=tsv -o rows");
  const std::string module = slurp(wasm_path("mix"));
  const std::string kinds[] = {"no module", module.substr(0, 40),
                               "func @f() -> i32 {\nb0:\n  no\n}\n"};
  for (const std::string& bytes : kinds) {
    write_text("x.file", bytes);
    for (const char* words : kTakeModules) expect(words, 3);
    expect("run x.file", 125);
  }
}

// With a profile, bodies are validated while the worker compiles known methods.
TEST_F(CliErrors, module_that_is_invalid_is_refused_alike_with_a_profile) {
  // Its _start leaves an i64 on the stack.
  const std::string bytes(
      "\0asm\1\0\0\0\1\4\1\x60\0\0\3\2\1\0\7\12\1\6_start\0\0\12\6\1\4\0\x42\1\xb", 38);
  write_text("x.file", bytes);
  const RunResult without = tool("run x.file");
  EXPECT_EQ(without.code, 125);
  EXPECT_NE(without.err.find("type mismatch"), std::string::npos) << without.err;
  const RunResult with = tool("run --profile new.upf x.file");
  EXPECT_EQ(with.code, 125);
  EXPECT_EQ(with.err, without.err);
  EXPECT_EQ(tool("profile show new.upf").code, 1) << "nothing has run, so there is nothing to save";
}

TEST_F(CliErrors, module_that_is_missing_is_1_everywhere_and_125_where_it_was_to_run) {
  run("mix", "p.upf");
  tool("profile export p.upf --format=tsv -o rows");
  for (const char* words : kTakeModules) expect(words, 1);
  expect("run x.file", 125);
}

const std::string kTakeProfiles[] = {"profile show x.file",
                                     "profile show --log x.file",
                                     "profile show --timeline x.file",
                                     "profile show --calls x.file",
                                     "profile show --order x.file",
                                     "profile overlap x.file p.upf",
                                     "profile overlap p.upf x.file",
                                     "profile diff x.file p.upf",
                                     "profile top x.file",
                                     "profile check x.file",
                                     "profile merge -o sum p.upf x.file",
                                     "profile match x.file " + wasm_path("mix"),
                                     "profile export x.file --format=json",
                                     "profile import x.file -o sum",
                                     "profile dot x.file",
                                     "profile promote x.file --to q.upf",
                                     "report x.file -o page.html",
                                     "report p.upf -o page.html --against x.file",
                                     "compile " + wasm_path("mix") + " -f main --profile x.file",
                                     "trace dump x.file",
                                     "trace validate x.file",
                                     "trace profile x.file",
                                     "trace overlap x.file x.file"};

TEST_F(CliErrors, profile_that_is_none_is_3_everywhere) {
  run("mix", "p.upf");
  write_text("x.file", "neither a profile nor a trace\n");
  for (const std::string& words : kTakeProfiles) expect(words, 3);
}

TEST_F(CliErrors, profile_that_is_missing_is_1_everywhere) {
  run("mix", "p.upf");
  for (const std::string& words : kTakeProfiles) expect(words, 1);
}

}  // namespace
}  // namespace uptier::test::cli_errors_test
