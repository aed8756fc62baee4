// uptier run --coverage: what ran, in every tier, and the sums of many runs.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/tool_dir.h"

namespace uptier::coverage_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string stored(const std::string& name) {
  return std::string(UPTIER_SOURCE_DIR) + "/tests/fuzz/corpus/dwarf/" + name + ".wasm";
}

// The only file of a coverage with one.
struct OneFile {
  std::map<int, uint64_t> lines;
  std::map<std::string, uint64_t> calls;
  std::vector<std::array<uint64_t, 3>> branches;

  explicit OneFile(const json& file) {
    for (const json& l : file["lines"]) lines[l[0]] = l[1];
    for (const json& f : file["functions"]) calls[f["name"]] = f["calls"];
    for (const json& b : file["branches"]) branches.push_back({b[0], b[1], b[2]});
  }
  // Everything as 0 or 1.
  OneFile hits() const {
    OneFile h = *this;
    for (auto& [line, n] : h.lines) n = n != 0;
    for (auto& [name, n] : h.calls) n = n != 0;
    for (auto& b : h.branches) b = {b[0], b[1] != 0, b[2] != 0};
    return h;
  }
  friend bool operator==(const OneFile&, const OneFile&) = default;
};

class CoverageTool : public test::ToolDir {
 protected:
  json all(const std::string& file) const { return json::parse(test::slurp(path(file))); }
  OneFile one(const std::string& file) const {
    const json files = all(file)["files"];
    EXPECT_EQ(files.size(), 1u) << files;
    return OneFile(files[0]);
  }
  // The name of the only JSON file in a directory.
  std::string only_json(const std::string& folder) const {
    std::string found;
    for (const auto& e : std::filesystem::directory_iterator(path(folder))) {
      if (e.path().extension() != ".json") continue;
      EXPECT_EQ(found, "");
      found = folder + "/" + e.path().filename().string();
    }
    return found;
  }
};

constexpr const char* kTiers[] = {"auto", "baseline", "optimized"};

TEST_F(CoverageTool, every_tier_has_what_ran_by_exact_counts) {
  for (const char* name : {"plain4", "plain5", "lines4", "lines5"}) {
    ASSERT_EQ(tool("run --tier=instrumented --coverage exact.json " + stored(name)).code, 0);
    EXPECT_EQ(all("exact.json")["counts"], "executions");
    const OneFile expected = one("exact.json").hits();
    EXPECT_TRUE(expected.lines.at(22) == 1 && expected.lines.at(26) == 0) << name;
    EXPECT_EQ(expected.lines.at(21), 1u) << name << ": its code has no operation";
    EXPECT_TRUE(expected.calls.at("divide") == 1 && expected.calls.at("never") == 0) << name;
    EXPECT_FALSE(expected.branches.empty());
    for (const char* tier : kTiers) {
      const test::RunResult r =
          tool("run --tier=" + std::string(tier) + " --coverage hits.json " + stored(name));
      ASSERT_EQ(r.code, 0) << r.err;
      EXPECT_EQ(all("hits.json")["counts"], "runs");
      EXPECT_TRUE(one("hits.json") == expected) << name << " " << tier;
    }
  }
}

// Blocks that first run long after their method was optimized, and one that does not.
constexpr const char* kLate =
    "static volatile int sink;\n"
    "__attribute__((noinline)) static int step(int i, int late) {\n"
    "  if (i > late)\n"
    "    sink += 3;\n"
    "  if (i == 2999999 && late < 5000000)\n"
    "    sink -= 7;\n"
    "  if (sink == -123456789)\n"
    "    sink = 9;\n"
    "  return sink & i;\n"
    "}\n"
    "__attribute__((export_name(\"_start\"))) void start(void) {\n"
    "  for (int i = 0; i < 3000000; i++)\n"
    "    sink += step(i, 2990000);\n"
    "}\n";

TEST_F(CoverageTool, what_runs_late_in_optimized_code_is_seen) {
  if (!installed("clang wasm-ld")) GTEST_SKIP() << "SKIPPED: clang or wasm-ld is missing";
  write_text("late.c", kLate);
  for (const char* flags : {"-O0", "-O1"}) {
    const test::RunResult built = in_dir("clang --target=wasm32 -nostdlib -Wl,--no-entry -g " +
                                         std::string(flags) + " late.c -o late.wasm");
    ASSERT_EQ(built.code, 0) << built.err;
    for (const char* tier : kTiers) {
      const test::RunResult r =
          tool("run --tier=" + std::string(tier) + " --coverage c.json late.wasm");
      ASSERT_EQ(r.code, 0) << r.err;
      const OneFile c = one("c.json");
      EXPECT_EQ(c.lines.at(4), 1u) << flags << tier;
      EXPECT_EQ(c.lines.at(6), 1u) << flags << tier;
      EXPECT_EQ(c.lines.at(8), 0u) << flags << tier;
      EXPECT_EQ(c.lines.at(9), 1u) << flags << tier;
    }
  }
}

TEST_F(CoverageTool, a_trap_and_a_time_limit_keep_what_ran) {
  const test::RunResult trap =
      tool("run --coverage c.json --invoke outer " + stored("plain5") + " 3");
  EXPECT_EQ(trap.code, 134);
  const OneFile c = one("c.json");
  EXPECT_EQ(c.calls.at("middle"), 1u);
  EXPECT_EQ(c.calls.at("deep"), 0u);
  EXPECT_EQ(c.calls.at("start"), 0u);
}

TEST_F(CoverageTool, a_directory_adds_runs) {
  const std::string run = "run --coverage cover/ --invoke ";
  ASSERT_EQ(tool(run + "never " + stored("plain5") + " 9").code, 0);
  ASSERT_EQ(tool(run + "never " + stored("plain5") + " 2").code, 0);
  ASSERT_EQ(tool(run + "divide " + stored("plain5") + " 8 2").code, 0);
  const std::string file = only_json("cover");
  EXPECT_THAT(file, HasSubstr("cover/plain5-"));
  const OneFile sum = one(file);
  EXPECT_EQ(sum.calls.at("never"), 2u);
  EXPECT_EQ(sum.calls.at("divide"), 2u);
  EXPECT_EQ(sum.calls.at("start"), 0u);
  EXPECT_EQ(sum.lines.at(26), 2u);
  EXPECT_EQ(sum.lines.at(27), 1u);
  EXPECT_EQ(sum.lines.at(31), 0u);
  bool both = false;
  for (const auto& b : sum.branches) both |= b[0] == 26 && b[1] == 1 && b[2] == 1;
  EXPECT_TRUE(both);
  // Another module has a file of its own; no second file of this one is made.
  ASSERT_EQ(tool("run --coverage cover " + stored("plain4")).code, 0);
  EXPECT_EQ(in_dir("ls cover/*.json | wc -l").out, "2\n");
}

TEST_F(CoverageTool, runs_that_end_at_the_same_time_are_all_added) {
  const std::string run =
      std::string(UPTIER_TOOL) + " run --coverage cover/ --invoke divide " + stored("plain5");
  const test::RunResult r =
      in_dir("for i in 1 2 3 4 5 6 7 8; do " + run + " 8 2 >/dev/null 2>&1 & done; wait");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(one(only_json("cover")).calls.at("divide"), 8u);
}

TEST_F(CoverageTool, genhtml_takes_a_directory_of_several_modules) {
  if (!installed("clang wasm-ld genhtml")) {
    GTEST_SKIP() << "SKIPPED: clang, wasm-ld or genhtml is missing";
  }
  write_text("late.c", kLate);
  for (const char* name : {"a", "b"}) {
    const std::string flags = name[0] == 'a' ? "-O0" : "-O1";
    ASSERT_EQ(in_dir("clang --target=wasm32 -nostdlib -Wl,--no-entry -g " + flags + " late.c -o " +
                     name + ".wasm")
                  .code,
              0);
    ASSERT_EQ(tool("run --coverage cover/ " + std::string(name) + ".wasm").code, 0);
  }
  const test::RunResult html = in_dir("genhtml --branch-coverage cover/coverage.info -o html");
  ASSERT_EQ(html.code, 0) << html.out << html.err;
  EXPECT_TRUE(std::filesystem::exists(path("html/index.html")));
}

TEST_F(CoverageTool, files_that_do_not_fit_are_left_as_they_are) {
  const std::string run = "run --coverage cover/ --invoke divide " + stored("plain5") + " 8 2";
  ASSERT_EQ(tool(run).code, 0);
  const std::string file = only_json("cover");
  const std::string before = test::slurp(path(file));
  const test::RunResult counted = tool(
      "run --tier=instrumented --coverage cover/ --invoke divide " + stored("plain5") + " 8 2");
  EXPECT_EQ(counted.code, 1);
  EXPECT_THAT(counted.err, HasSubstr("it counts runs and this run counts executions; use another "
                                     "directory"));
  EXPECT_EQ(test::slurp(path(file)), before);
  for (const std::string text :
       {"{}", "[1, 2", "{\"counts\": \"runs\", \"files\": [{\"file\": 3}]}",
        "{\"counts\": \"runs\", \"files\": []}"}) {
    write_text(file, text);
    const test::RunResult r = tool(run);
    EXPECT_EQ(r.code, 1) << text;
    EXPECT_THAT(r.err, HasSubstr(".json: it ")) << text;
    EXPECT_EQ(test::slurp(path(file)), text);
  }
}

// The module's code differs, so its counts must not be added to those of other runs.
TEST_F(CoverageTool, profiles_of_covered_runs_are_kept_apart) {
  ASSERT_EQ(tool("run --profile a.upf " + stored("plain5")).code, 0);
  ASSERT_EQ(tool("run --profile b.upf --coverage c.json " + stored("plain5")).code, 0);
  const ProfileFile a = read("a.upf"), b = read("b.upf");
  ASSERT_FALSE(a.profile.methods.empty());
  ASSERT_FALSE(b.profile.methods.empty());
  EXPECT_NE(a.profile.methods.begin()->first.module_key,
            b.profile.methods.begin()->first.module_key);
}

}  // namespace
}  // namespace uptier::coverage_test
