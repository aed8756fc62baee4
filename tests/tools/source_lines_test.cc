// Source lines where people read them: show --lines, exports, traps, coverage.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/support/tool_dir.h"
#include "tools/module_lines.h"
#include "uptier/profile_file.h"

namespace uptier::source_lines_test {
namespace {

using nlohmann::json;

std::string module(const std::string& name) {
  return std::string(UPTIER_SOURCE_DIR) + "/tests/fuzz/corpus/dwarf/" + name + ".wasm";
}

// One message of a protobuf file: numbers and bytes by field, in order.
struct Message {
  struct Field {
    uint64_t number;
    uint64_t value;
    std::string bytes;
  };
  std::vector<Field> fields;

  static uint64_t varint(const std::string& b, size_t& at) {
    uint64_t v = 0;
    for (unsigned shift = 0; at < b.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(b[at++]);
      v |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    return v;
  }
  explicit Message(const std::string& b) {
    for (size_t at = 0; at < b.size();) {
      const uint64_t key = varint(b, at), n = varint(b, at);
      const bool is_bytes = (key & 7) == 2;
      fields.push_back({key >> 3, n, is_bytes ? b.substr(at, n) : ""});
      if (is_bytes) at += n;
    }
  }
  uint64_t number(uint64_t field) const {
    for (const Field& f : fields) {
      if (f.number == field) return f.value;
    }
    return 0;
  }
  std::vector<uint64_t> packed(uint64_t field) const {
    std::vector<uint64_t> list;
    for (const Field& f : fields) {
      for (size_t at = 0; f.number == field && at < f.bytes.size();) {
        list.push_back(varint(f.bytes, at));
      }
    }
    return list;
  }
};

// A pprof file: sums of one of its values by the frames of a stack, "outer:1;inner:2".
std::map<std::string, uint64_t> stacks_of(const std::string& file, const std::string& type) {
  const Message whole(file);
  std::vector<std::string> strings, types;
  std::map<uint64_t, std::string> functions, locations;
  for (const auto& f : whole.fields) {
    if (f.number == 6) strings.push_back(f.bytes);
  }
  for (const auto& f : whole.fields) {
    if (f.number == 1) types.push_back(strings[Message(f.bytes).number(1)]);
    if (f.number == 5) functions[Message(f.bytes).number(1)] = strings[Message(f.bytes).number(2)];
  }
  for (const auto& f : whole.fields) {
    if (f.number != 4) continue;
    const Message location(f.bytes);
    std::string& text = locations[location.number(1)];
    for (const auto& line : location.fields) {
      if (line.number != 4) continue;
      const Message l(line.bytes);
      const std::string frame = functions[l.number(1)] + ":" + std::to_string(l.number(2));
      text = frame + (text.empty() ? "" : ";" + text);
    }
  }
  const auto index = static_cast<size_t>(std::ranges::find(types, type) - types.begin());
  std::map<std::string, uint64_t> sums;
  for (const auto& f : whole.fields) {
    if (f.number != 2) continue;
    const Message sample(f.bytes);
    const std::vector<uint64_t> values = sample.packed(2);
    std::string stack;
    for (uint64_t l : sample.packed(1)) {
      stack = locations[l] + (stack.empty() ? "" : ";" + stack);
    }
    if (values.at(index) != 0) sums[stack] += values[index];
  }
  return sums;
}

class SourceLinesTool : public test::ToolDir {
 protected:
  // Profiles a run with exact counts.
  void profile(const std::string& name) const {
    const test::RunResult r = tool("run --tier=instrumented --profile p.upf " + module(name));
    ASSERT_EQ(r.code, 0) << r.err;
  }
};

// square() runs 34 times in each of 2000 calls of sum(100).
constexpr uint64_t kSquares = 2000 * 34;

TEST_F(SourceLinesTool, show_names_the_lines_and_how_often_they_ran) {
  for (const char* name : {"lines4", "lines5", "plain4", "plain5"}) {
    profile(name);
    const test::RunResult text = tool("profile show p.upf --lines --module " + module(name));
    ASSERT_EQ(text.code, 0) << text.err;
    EXPECT_NE(text.out.find("/src/lines.c:14"), std::string::npos) << text.out;
    const test::RunResult r = tool("profile show p.upf --lines --json --module " + module(name));
    ASSERT_EQ(r.code, 0) << r.err;
    const json all = json::parse(r.out);
    double operations = 0;
    bool square = false, divide = false;
    for (const json& l : all["lines"]) {
      EXPECT_EQ(l["file"], "/src/lines.c");
      EXPECT_NE(l["function"], "never");
      operations += l["operations"].get<double>();
      if (l["line"] == 7 && std::string(name).starts_with("plain")) {
        square = true;
        EXPECT_EQ(l["executions"], kSquares);
      }
      if (l["line"] == 22) {
        divide = true;
        EXPECT_EQ(l["executions"], 1);
        EXPECT_EQ(l["function"], "divide");
      }
    }
    EXPECT_DOUBLE_EQ(operations, all["operations"].get<double>());
    EXPECT_TRUE(divide) << r.out;
    EXPECT_EQ(square, std::string(name).starts_with("plain")) << r.out;
    ASSERT_EQ(in_dir("rm p.upf").code, 0);
  }
}

// The share of each line in all operations, by copies that every call runs, of optimized and OSR code too, and by a run
// that counts everything. bench/lines.py looks at runs that sample.
TEST_F(SourceLinesTool, observed_shares_of_lines_are_those_of_exact_counts) {
  const auto shares = [&](const std::string& name, const std::string& options) {
    EXPECT_EQ(tool("run " + options + " --profile s.upf " + module(name)).code, 0) << options;
    const test::RunResult r = tool("profile show s.upf --lines --json --module " + module(name));
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(in_dir("rm s.upf").code, 0);
    const json all = json::parse(r.out);
    std::map<int, double> by_line;
    for (const json& l : all["lines"]) {
      by_line[l["line"]] = l["operations"].get<double>() / all["operations"].get<double>();
    }
    return by_line;
  };
  for (const char* name : {"lines4", "lines5", "plain4", "plain5"}) {
    const auto exact = shares(name, "--tier=instrumented");
    EXPECT_GT(exact.size(), 5u);
    for (const char* options : {"--interval=1 --policy=always", "--interval=1 --policy=never"}) {
      auto sampled = shares(name, options);
      for (const auto& [line, share] : exact) {
        EXPECT_NEAR(sampled[line], share, 0.03) << name << " " << options << " line " << line;
      }
    }
  }
}

TEST_F(SourceLinesTool, folded_stacks_end_in_lines_and_inlined_calls_are_frames) {
  profile("plain5");
  const test::RunResult r = tool(
      "profile export p.upf --format=folded --by=executions --lines --module " + module("plain5"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("\nstart:31;sum:14;square:7 "), std::string::npos) << r.out;
  EXPECT_EQ(r.out.find("block_"), std::string::npos) << r.out;
}

TEST_F(SourceLinesTool, pprof_has_the_lines_of_the_sources) {
  profile("plain5");
  const std::string from = "profile export p.upf --format=pprof -o p.pb ";
  ASSERT_EQ(tool(from + "--lines --module " + module("plain5")).code, 0);
  const std::string bytes = test::slurp(path("p.pb"));
  EXPECT_NE(bytes.find("/src/lines.c"), std::string::npos);
  // The same numbers by another way.
  std::istringstream folded(
      tool("profile export p.upf --format=folded --by=executions --lines --module " +
           module("plain5"))
          .out);
  std::map<std::string, uint64_t> expected;
  std::string stack;
  for (uint64_t n = 0; folded >> stack >> n;) expected[stack] = n;
  EXPECT_EQ(stacks_of(bytes, "operations"), expected);
  EXPECT_EQ(expected["start:31;sum:14;square:7"], 5 * kSquares);
  // Each block is at the line of its first operation.
  const auto executions = stacks_of(bytes, "executions");
  EXPECT_EQ(executions.at("start:31;sum:14"), kSquares);
  EXPECT_EQ(executions.at("divide:21"), 1u);
  EXPECT_EQ(stacks_of(bytes, "calls"),
            (std::map<std::string, uint64_t>{{"divide:21", 1}, {"start:30", 1}}));
  if (!installed("go")) GTEST_SKIP() << "SKIPPED: pprof -list: go is missing";
  write_text("src.c", test::slurp(std::string(UPTIER_SOURCE_DIR) + "/tests/support/lines/lines.c"));
  const test::RunResult list = in_dir(
      "mkdir -p root/src && cp src.c root/src/lines.c && go tool pprof -sample_index=executions "
      "-source_path=root -trim_path=/ -list=square p.pb");
  ASSERT_EQ(list.code, 0) << list.err;
  EXPECT_NE(list.out.find("return x * x + 1;"), std::string::npos) << list.out << list.err;
}

// A body that was inlined into `start`, where it calls divide().
TEST_F(SourceLinesTool, pprof_has_inlined_calls_at_their_lines_in_the_callers) {
  profile("plain5");
  const auto lines = tools::ModuleLines::open(module("plain5"));
  ASSERT_TRUE(lines.ok());
  const std::vector<tools::BodyGraph>& bodies = (*lines)->bodies();
  const auto divide = std::ranges::find(bodies, "divide", &tools::BodyGraph::name);
  ASSERT_NE(divide, bodies.end());
  const std::string bytes = test::slurp(path("p.upf"));
  Result<ProfileFile> file = profile_from_file(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(file.ok());
  int calls = 0;
  for (const tools::BodyGraph& caller : bodies) {
    for (const tools::BodyGraph::Call& call : caller.calls) {
      const bool in_start =
          caller.name.ends_with("start") && call.callee && &bodies[*call.callee] == &*divide;
      if (!in_start) continue;
      ++calls;
      file->profile.inlined[{*caller.key, {{call.site, *divide->key}}}] = {
          {caller.cfg_hash, divide->cfg_hash}, {{1, {64, 1024, 64}}}};
    }
  }
  ASSERT_EQ(calls, 1);
  const auto again = profile_to_file(*file);
  write_text("i.upf", {reinterpret_cast<const char*>(again.data()), again.size()});
  const test::RunResult r =
      tool("profile export i.upf --format=pprof -o p.pb --lines --module " + module("plain5"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(stacks_of(test::slurp(path("p.pb")), "inlined"),
            (std::map<std::string, uint64_t>{{"start:32;divide:21", 1024}}));
}

TEST_F(SourceLinesTool, a_trap_names_its_line) {
  for (const char* tier : {"baseline", "optimized", "instrumented"}) {
    const test::RunResult r =
        tool("run --tier=" + std::string(tier) + " --invoke divide " + module("lines4") + " 1 0");
    EXPECT_EQ(r.code, 134);
    EXPECT_NE(r.err.find("trap: integer divide by zero at 0x"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("\n  at divide, /src/lines.c:22:12\n"), std::string::npos) << r.err;
  }
}

// Callers too, whatever was inlined by our compiler: frames are those of the sources.
TEST_F(SourceLinesTool, a_trap_names_the_lines_of_its_callers) {
  for (const char* tier : {"baseline", "optimized", "instrumented"}) {
    for (const char* name : {"plain4", "lines5"}) {
      const test::RunResult r =
          tool("run --tier=" + std::string(tier) + " --invoke outer " + module(name) + " 3");
      EXPECT_EQ(r.code, 134);
      const std::string stack =
          "\n  at divide, /src/lines.c:22:12\n  called by middle, /src/lines.c:36:10\n"
          "  called by outer, /src/lines.c:40:10\n";
      EXPECT_NE(r.err.find(stack), std::string::npos) << tier << " " << name << r.err;
    }
  }
  const test::RunResult deep =
      tool("run --tier=baseline --invoke deep " + module("plain5") + " 100");
  EXPECT_EQ(deep.code, 134);
  EXPECT_NE(deep.err.find("\n  called by deep, /src/lines.c:45:"), std::string::npos) << deep.err;
  EXPECT_TRUE(deep.err.ends_with("\n  ...\n")) << deep.err;
}

TEST_F(SourceLinesTool, broken_lines_are_told_and_the_run_goes_on) {
  std::string bytes = test::slurp(module("lines4"));
  const size_t at = bytes.find(".debug_line") + 11;
  bytes[at + 3] = 1;
  write_text("broken.wasm", bytes);
  const test::RunResult trap = tool("run --invoke divide broken.wasm 1 0");
  EXPECT_EQ(trap.code, 134);
  EXPECT_NE(trap.err.find("broken.wasm: its debug information is refused: .debug_line at 0x0: "),
            std::string::npos)
      << trap.err;
  EXPECT_NE(trap.err.find("trap: integer divide by zero"), std::string::npos) << trap.err;
  EXPECT_EQ(tool("run broken.wasm").err, "");
  const test::RunResult covered = tool("run --coverage c.info broken.wasm");
  EXPECT_EQ(covered.code, 1);
  EXPECT_NE(covered.err.find("is refused: .debug_line"), std::string::npos) << covered.err;
}

TEST_F(SourceLinesTool, coverage_counts_lines_exactly_and_lists_functions_never_called) {
  for (const char* name : {"plain4", "plain5"}) {
    const test::RunResult r = tool("run --tier=instrumented --coverage c.json " + module(name));
    ASSERT_EQ(r.code, 0) << r.err;
    const json file = json::parse(test::slurp(path("c.json")))["files"][0];
    EXPECT_EQ(file["file"], "/src/lines.c");
    std::map<int, uint64_t> lines;
    for (const json& l : file["lines"]) lines[l[0]] = l[1];
    const std::map<int, uint64_t> expected = {
        {7, kSquares}, {11, 2000}, {12, 202'000}, {13, 200'000}, {14, kSquares},
        {16, 132'000}, {18, 2000}, {21, 1},       {22, 1},       {25, 0},
        {26, 0},       {27, 0},    {28, 0},       {30, 1},       {31, 2001},
        {32, 1},       {33, 1},    {35, 0},       {36, 0},       {39, 0},
        {40, 0},       {43, 0},    {44, 0},       {45, 0},       {46, 0}};
    EXPECT_EQ(lines, expected) << name;
    bool branch = false;
    for (const json& b : file["branches"]) {
      const std::set<uint64_t> counts = {b[1], b[2]};
      branch |= b[0] == 13 && counts == std::set<uint64_t>{kSquares, 132'000};
    }
    EXPECT_TRUE(branch) << file["branches"];
    std::map<std::string, uint64_t> calls;
    for (const json& f : file["functions"]) calls[f["name"]] = f["calls"];
    EXPECT_EQ(
        calls,
        (std::map<std::string, uint64_t>{
            {"deep", 0}, {"divide", 1}, {"middle", 0}, {"never", 0}, {"outer", 0}, {"start", 1}}));
  }
}

TEST_F(SourceLinesTool, coverage_for_genhtml_has_only_files_that_are_here) {
  const test::RunResult r = tool("run --coverage c.info " + module("plain5"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("1 source files cannot be read here"), std::string::npos) << r.err;
  EXPECT_EQ(test::slurp(path("c.info")), "");
}

TEST_F(SourceLinesTool, wrong_words_are_explained) {
  const std::string plain = test::wasm_path("mix");
  const test::RunResult none = tool("run --coverage c.info " + plain);
  EXPECT_EQ(none.code, 125);
  EXPECT_NE(none.err.find("no .debug_line section and no source map; build it with -g"),
            std::string::npos)
      << none.err;
  profile("plain5");
  EXPECT_EQ(tool("profile show p.upf --lines").code, 2);
  run("mix", "mix.upf");
  const test::RunResult other = tool("profile show mix.upf --lines --module " + module("lines5"));
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("none of its methods is in the module"), std::string::npos) << other.err;
  const test::RunResult format =
      tool("profile export p.upf --format=csv --lines --module " + module("plain5"));
  EXPECT_EQ(format.code, 2);
  EXPECT_NE(format.err.find("use pprof, folded or speedscope"), std::string::npos) << format.err;
}

}  // namespace
}  // namespace uptier::source_lines_test
