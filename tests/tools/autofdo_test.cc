// uptier profile export --format=autofdo: the text, and what LLVM makes of it.
#include <gmock/gmock.h>

#include "tests/support/tool_dir.h"

namespace uptier::autofdo_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string stored(const std::string& name) {
  return std::string(UPTIER_SOURCE_DIR) + "/tests/fuzz/corpus/dwarf/" + name + ".wasm";
}

class Autofdo : public test::ToolDir {
 protected:
  // Profiles a run with exact counts, and exports it.
  std::string exported(const std::string& module) const {
    const test::RunResult r = tool("run --tier=instrumented --profile p.upf " + module);
    EXPECT_EQ(r.code, 0) << r.err;
    const test::RunResult e =
        tool("profile export p.upf --format=autofdo -o p.prof --module " + module);
    EXPECT_EQ(e.code, 0) << e.err;
    return test::slurp(path("p.prof"));
  }
  // Builds source text for WASI with what the compiler needs for such profiles. Returns "" and the
  // module's name, or what is missing.
  std::string build(const std::string& source, const std::string& extra) const {
    if (!installed("clang-22 wasm-ld-22")) return "clang-22 or lld-22 is missing";
    write_text("main.c", source);
    const test::RunResult r =
        in_dir("clang-22 --target=wasm32-wasi -Wno-deprecated -fdebug-info-for-profiling -g " +
               extra + " main.c -o m.wasm");
    return r.code == 0 ? "" : "clang-22 cannot build for WASI: " + r.err;
  }
};

// The lines of tests/support/lines/lines.c: start() is at 30, sum() at 10, square() at 6, divide() at 21.
TEST_F(Autofdo, lines_count_from_their_functions) {
  EXPECT_EQ(exported(stored("plain5")),
            "start:676004:1\n 0: 1\n 1: 2001\n 2: 1 divide:1\n 3: 1\n 1: sum:674000\n  1: 2000\n"
            "  2: 202000\n  3: 200000\n  4: 68000\n  6: 132000\n  8: 2000\n  4: square:68000\n"
            "   1: 68000\ndivide:2:1\n 0: 1\n 1: 1\n");
}

TEST_F(Autofdo, blocks_of_a_line_have_discriminators_and_functions_the_linkers_names) {
  // The row of start's first line goes on to the first constant of the loop.
  EXPECT_EQ(exported(stored("profiling")),
            "start:4601:1\n 0: 900\n 1.1: 900\n 1.2: 900\n 1.3: 100 _ZN1a1S1fEi:100\n 1.5: 900\n"
            " 1.6: 900\n 2: 1\n_ZN1a1S1fEi:100:100\n 1: 100\n");
}

TEST_F(Autofdo, llvm_profdata_reads_what_is_written) {
  if (!installed("llvm-profdata-22")) GTEST_SKIP() << "SKIPPED: llvm-profdata-22 is missing";
  for (const char* name : {"plain4", "plain5", "lines4", "lines5"}) {
    exported(stored(name));
    const test::RunResult r = in_dir("llvm-profdata-22 show --sample p.prof");
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.err, "");
    EXPECT_THAT(r.out, HasSubstr("4: inlined callee: square: ")) << name;
    EXPECT_THAT(r.out, HasSubstr("calls: divide:1")) << name;
    ASSERT_EQ(in_dir("rm p.upf").code, 0);
  }
}

// One line with several blocks: discriminators tell them apart.
constexpr const char* kOneLine =
    "#include <stdlib.h>\n"
    "volatile int sink;\n"
    "__attribute__((noinline)) void rare(int i) { sink = i; }\n"
    "__attribute__((noinline)) int often(int i) { return sink + i; }\n"
    "typedef int Call(int);\n"
    "int twice(int i) { return sink * 2 + i; }\n"
    "Call* volatile calls[2] = {often, twice};\n"
    "int main(void) {\n"
    "  for (int i = 0; i < 7000; i++) { if (i % 70 == 0) rare(i); else sink += often(i); }\n"
    "  for (int i = 0; i < 300; i++)\n"
    "    sink += calls[i % 3 == 0](i);\n"
    "  return 0;\n"
    "}\n";

TEST_F(Autofdo, discriminators_and_callees_are_those_of_the_run) {
  for (const char* flags : {"-O0", "-O2", "-O2 -gdwarf-4"}) {
    const std::string why = build(kOneLine, flags);
    if (!why.empty()) GTEST_SKIP() << "SKIPPED: " << why;
    const std::string text = exported("m.wasm");
    const size_t at = text.find("main:");
    ASSERT_NE(at, std::string::npos) << text;
    const std::string main = text.substr(at, text.find("\n", text.find("\n 3: ", at) + 1) - at);
    EXPECT_THAT(main, testing::ContainsRegex("\n 1\\.[0-9]+: 100 rare:100\n")) << flags << text;
    EXPECT_THAT(main, testing::ContainsRegex("\n 1\\.[0-9]+: 6900 often:6900\n")) << flags << text;
    EXPECT_THAT(main, HasSubstr("\n 3: 300 often:200 twice:100")) << flags << text;
    EXPECT_THAT(text, HasSubstr("\noften:")) << flags;
    ASSERT_EQ(in_dir("rm p.upf").code, 0);
  }
}

TEST_F(Autofdo, the_compiler_takes_branches_and_entries_from_it) {
  const std::string why = build(kOneLine, "-O2");
  if (!why.empty()) GTEST_SKIP() << "SKIPPED: " << why;
  exported("m.wasm");
  const std::string compile =
      "clang-22 --target=wasm32-wasi -Wno-deprecated -O2 -g -fdebug-info-for-profiling -Werror "
      "-S -emit-llvm main.c -o - ";
  const test::RunResult r =
      in_dir(compile + "-fprofile-sample-use=p.prof >ir && grep -E 'weights|entry_count|icmp' ir");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("\"branch_weights\", i32 100, i32 6900}"));
  EXPECT_THAT(r.out, HasSubstr("\"function_entry_count\", i64 7100}"));
  // The most frequent target of the indirect call is called directly after a comparison.
  EXPECT_THAT(r.out, testing::ContainsRegex("icmp eq ptr %[0-9]+, @often"));
  const test::RunResult none = in_dir(compile + "| grep -cE 'weights|entry_count|, @often'");
  EXPECT_EQ(none.out, "0\n");
}

// An iteration of the loop that was unrolled stands for four of the loop in the sources.
TEST_F(Autofdo, copies_of_code_that_the_compiler_made_add_up) {
  const std::string why = build(
      "volatile int sink;\n"
      "int main(void) {\n"
      "#pragma clang loop unroll_count(4)\n"
      "  for (int i = 0; i < 4000; i++)\n"
      "    sink += i;\n"
      "  return 0;\n"
      "}\n",
      "-O2");
  if (!why.empty()) GTEST_SKIP() << "SKIPPED: " << why;
  EXPECT_THAT(exported("m.wasm"), HasSubstr("\n 3: 4000\n"));
  const test::RunResult lines = tool("profile show p.upf --lines --json --module m.wasm");
  EXPECT_THAT(lines.out, HasSubstr("\"executions\": 1000,"));
}

TEST_F(Autofdo, names_are_those_of_the_linker) {
  if (!installed("clang-22 wasm-ld-22")) GTEST_SKIP() << "SKIPPED: clang-22 or lld-22 is missing";
  write_text("main.cc",
             "namespace a { volatile int sink;\n"
             "struct S { static int f(int i); };\n"
             "__attribute__((noinline)) int S::f(int i) {\n"
             "  return sink + i; } }\n"
             "extern \"C\" __attribute__((export_name(\"_start\"))) void start() {\n"
             "  for (int i = 0; i < 9; i++) a::sink = a::S::f(i); }\n");
  const test::RunResult built = in_dir(
      "clang-22 --target=wasm32 -nostdlib -Wl,--no-entry -O1 -g -fdebug-info-for-profiling main.cc "
      "-o m.wasm");
  ASSERT_EQ(built.code, 0) << built.err;
  const std::string text = exported("m.wasm");
  // Offsets count from the definition, at line 3, and not from the declaration.
  EXPECT_THAT(text, HasSubstr("_ZN1a1S1fEi:9:9\n 1: 9\n")) << text;
  EXPECT_THAT(text, HasSubstr("start:")) << text;
  EXPECT_THAT(text, HasSubstr(" _ZN1a1S1fEi:9\n")) << text;
}

TEST_F(Autofdo, what_cannot_be_exported_is_said) {
  ASSERT_EQ(tool("run --tier=instrumented --profile p.upf " + stored("plain5")).code, 0);
  const test::RunResult none = tool("profile export p.upf --format=autofdo");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("autofdo needs --module prog.wasm"));
  const test::RunResult plain =
      tool("profile export p.upf --format=autofdo --module " + test::wasm_path("mix"));
  EXPECT_EQ(plain.code, 1);
  EXPECT_THAT(plain.err, HasSubstr("no .debug_line section; build it with -g"));
  run("mix", "mix.upf");
  const test::RunResult other =
      tool("profile export mix.upf --format=autofdo --module " + stored("lines4"));
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err,
              HasSubstr("-fdebug-info-for-profiling, and profile a run of the same code"));
}

}  // namespace
}  // namespace uptier::autofdo_test
