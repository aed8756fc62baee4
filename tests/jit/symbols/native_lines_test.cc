// The source lines of compiled code for native tools: gdb's object files, perf's dumps. Where the
// tools are installed, they read them.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "jit/code/named_code.h"
#include "jit/symbols/gdb_image.h"
#include "test_paths.h"
#include "tests/support/tool_dir.h"

#ifdef UPTIER_CALC

namespace uptier::native_lines_test {
namespace {

using jit::NamedCode;

// Two bodies of 64 bytes; in the first, bytes 8 to 24 are of an inlined call at line 5.
std::vector<NamedCode> bodies() {
  NamedCode first;
  first.base = reinterpret_cast<const uint8_t*>(0x10000);
  first.size = 64;
  first.name = "first";
  first.lines.files = {"a.calc", "/src/b.calc"};
  first.lines.rows = {{0, {0, 4, 1}, 0}, {8, {1, 20, 3}, 1}, {24, {0, 5, 0}, 0}, {40, {}, 0}};
  first.lines.bodies = {{"inner", 0, {0, 5, 9}}};
  first.lines.end = 60;
  NamedCode second = first;
  second.base += 64;
  second.name = "second";
  second.lines = {};
  return {first, second};
}

class NativeLines : public test::ToolDir {
 protected:
  void write_image(const std::vector<NamedCode>& codes) const {
    const std::vector<uint8_t> image = jit::gdb_image(codes);
    write_text("image.o", std::string(image.begin(), image.end()));
  }
  // Returns the output of gdb's commands on a run of calc with `options`.
  std::string gdb(const std::string& options, const std::vector<std::string>& commands) const {
    std::string words =
        "gdb -nx -batch -ex 'set breakpoint pending on' "
        "-ex 'set debuginfod enabled off' "
        "-ex 'handle SIGSEGV nostop noprint pass' "
        "-ex 'handle SIG34 SIG35 SIG36 SIG37 SIG38 SIG39 nostop noprint pass' ";
    for (const std::string& c : commands) words += "-ex '" + c + "' ";
    const test::RunResult r =
        in_dir(words + "--args " UPTIER_CALC " -O gdb=on -O workers=0 " + options);
    return r.out + r.err;
  }
  // gdb stops processes by ptrace, which containers may forbid.
  bool may_trace() const {
    if (!installed("gdb")) return false;
    const std::string said = in_dir("gdb -nx -batch -ex run --args true 2>&1").out;
    return said.find("exited normally") != std::string::npos;
  }
};

#define NEEDS_GDB()                                                                    \
  if (!may_trace()) {                                                                  \
    std::puts("SKIPPED: gdb is not installed or may not trace, lines were not shown"); \
    return;                                                                            \
  }

TEST_F(NativeLines, the_image_of_gdb_is_correct_dwarf) {
  write_image(bodies());
  const char* tool = installed("llvm-dwarfdump-22") ? "llvm-dwarfdump-22" : "llvm-dwarfdump";
  if (!installed(tool)) {
    std::puts("SKIPPED: llvm-dwarfdump is not installed, the image was not verified");
    return;
  }
  const test::RunResult verified = in_dir(std::string(tool) + " --verify image.o");
  EXPECT_EQ(verified.code, 0) << verified.out;
  const std::string lines = in_dir(std::string(tool) + " --debug-line image.o").out;
  const std::string info = in_dir(std::string(tool) + " --debug-info image.o").out;
  for (const char* row :
       {"0x0000000000010000      4      1      1", "0x0000000000010008     20      3      2",
        "0x0000000000010018      5      0      1", "0x0000000000010028      0      0      1"}) {
    EXPECT_NE(lines.find(row), std::string::npos) << row << "\n" << lines;
  }
  EXPECT_NE(lines.find("0x000000000001003c"), std::string::npos) << "where it ends\n" << lines;
  for (const char* part : {"DW_TAG_inlined_subroutine", "(\"inner\")", "DW_AT_call_line\t(5)",
                           "[0x0000000000010008, 0x0000000000010018)"}) {
    EXPECT_NE(info.find(part), std::string::npos) << part << "\n" << info;
  }
  EXPECT_EQ(info.find("second"), std::string::npos) << "it has no lines";
}

constexpr const char* kProgram =
    "fn square(x) {\n"
    "  return x * x\n"
    "}\n"
    "fn sum(n) {\n"
    "  let s = 0\n"
    "  for i in 0..n {\n"
    "    s = s + square(i)\n"
    "  }\n"
    "  return s\n"
    "}\n"
    "let r = 0\n"
    "for k in 0..20000 { r = sum(100) }\n"
    "print(r)\n";

// Expects texts in this order.
void expect_in_order(const std::string& all, const std::vector<std::string>& texts) {
  size_t from = 0;
  for (const std::string& text : texts) {
    const size_t found = all.find(text, from);
    ASSERT_NE(found, std::string::npos) << text << "\n" << all;
    from = found + text.size();
  }
}

// The breakpoint is set before any code exists. gdb first stops at the next line that has some.
TEST_F(NativeLines, gdb_breaks_at_a_line_of_baseline_code) {
  NEEDS_GDB();
  write_text("sum.calc", kProgram);
  const std::string said =
      gdb("--tier=baseline sum.calc", {"break sum.calc:2", "run", "continue", "bt 1"});
  expect_in_order(said,
                  {"Breakpoint 1 (sum.calc:2) pending", "square [baseline plain v", "at sum.calc:2",
                   "return x * x", "#0  square [baseline plain v", "at sum.calc:2"});
}

// Frames of code that was optimized, entered in the middle of a loop, and inlined; and steps there.
TEST_F(NativeLines, gdb_shows_lines_of_optimized_code_and_inlined_bodies_as_frames) {
  NEEDS_GDB();
  write_text("sum.calc", kProgram);
  const std::string said = gdb("-O measure_rates=off -O policy=always -O workers=0 sum.calc",
                               {"break sum.calc:9", "run", "ignore 1 1000", "continue", "bt 2",
                                "break sum.calc:2", "continue", "bt 3", "next", "next"});
  expect_in_order(said, {"#0  sum [optimized", "at sum.calc:9", "#1  ", "main [optimized osr 0 v",
                         "at sum.calc:12", "#0  square () at sum.calc:2", "#1  sum [optimized",
                         "at sum.calc:7", "#2  ", "main [optimized osr 0 v", "at sum.calc:12",
                         "at sum.calc:7", "s = s + square(i)", "for i in 0..n"});
}

TEST_F(NativeLines, perf_annotates_code_with_its_source) {
  write_text("sum.calc", kProgram);
  const std::string record =
      "perf record -q -k mono -e cpu-clock -o d sh -c 'echo $$ > pid; rm -f /tmp/jit-$$.dump; "
      "exec " UPTIER_CALC " -O jit_dump=on --tier=baseline sum.calc'";
  if (!installed("perf") || in_dir(record).code != 0) {
    std::puts("SKIPPED: perf is not installed or may not record, nothing was annotated");
    return;
  }
  const test::RunResult inject = in_dir("perf inject --jit -i d -o j");
  const std::string file =
      "/tmp/jit-" + std::to_string(std::stoi(test::slurp(path("pid")))) + ".dump";
  const std::string dump = test::slurp(file), start = "square [baseline plain v";
  std::filesystem::remove(file);
  ASSERT_EQ(inject.code, 0) << inject.err;
  ASSERT_NE(dump.find(start), std::string::npos);
  const std::string name = dump.c_str() + dump.find(start);
  const std::string said = in_dir("perf annotate -i j --stdio -s \"" + name + "\" 2>&1").out;
  expect_in_order(said, {"<" + name + ">:", "sum.calc:2", "return x * x"});
}

// Returns the records of a dump: kind, and the bytes after its head.
std::vector<std::pair<uint32_t, std::string>> records_of(const std::string& dump) {
  std::vector<std::pair<uint32_t, std::string>> all;
  for (size_t at = 40; at + 16 <= dump.size();) {
    uint32_t kind, size;
    std::memcpy(&kind, &dump[at], 4);
    std::memcpy(&size, &dump[at + 4], 4);
    if (size < 16 || at + size > dump.size()) break;
    all.push_back({kind, dump.substr(at + 16, size - 16)});
    at += size;
  }
  return all;
}

uint64_t word_at(const std::string& bytes, size_t at) {
  uint64_t n = 0;
  if (at + sizeof n <= bytes.size()) std::memcpy(&n, &bytes[at], sizeof n);
  return n;
}

// Each record of lines is followed by the one of their code; entries rise, within the code.
TEST_F(NativeLines, a_jit_dump_has_the_lines_before_the_code) {
  write_text("sum.calc", kProgram);
  const test::RunResult r = in_dir("sh -c 'echo $$ > pid; exec " UPTIER_CALC
                                   " -O jit_dump=on --tier=optimized sum.calc'");
  ASSERT_EQ(r.code, 0) << r.err;
  const std::string file =
      "/tmp/jit-" + std::to_string(std::stoi(test::slurp(path("pid")))) + ".dump";
  const std::string dump = test::slurp(file);
  std::filesystem::remove(file);
  const auto records = records_of(dump);
  std::map<std::string, std::set<uint32_t>> lines;  // by function, all its plans
  for (size_t n = 0; n + 1 < records.size(); ++n) {
    const std::string& info = records[n].second;
    if (records[n].first != 2) continue;
    const std::string& load = records[n + 1].second;
    ASSERT_EQ(records[n + 1].first, 0u);
    const uint64_t base = word_at(load, 8), size = word_at(load, 24);
    ASSERT_EQ(word_at(info, 0), base);
    const std::string code = load.c_str() + 40, name = code.substr(0, code.find_first_of("# "));
    uint64_t last = 0;
    size_t at = 16;
    for (uint64_t left = word_at(info, 8); left != 0; --left) {
      const uint64_t address = word_at(info, at);
      EXPECT_TRUE(address >= last && address >= base && address < base + size) << name;
      last = address;
      lines[name].insert(static_cast<uint32_t>(word_at(info, at + 8)));
      EXPECT_STREQ(info.c_str() + at + 16, "sum.calc");
      at += 16 + std::strlen(info.c_str() + at + 16) + 1;
    }
    EXPECT_EQ(at, info.size());
  }
  EXPECT_TRUE(lines["sum"].contains(7));
  EXPECT_TRUE(lines["square"].contains(2));
  for (uint32_t line : lines["square"]) EXPECT_LE(line, 2u) << "another body's line";
}

}  // namespace
}  // namespace uptier::native_lines_test

#endif
