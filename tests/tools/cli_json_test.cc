// Output for programs and for people in a hurry: JSON from every command with results, and errors
// in one form that suggests the word that was probably meant.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/program_runs.h"
#include "tests/support/tool_dir.h"
#include "tools/nearest.h"
#include "tools/shortened.h"

namespace uptier::test::cli_json_test {
namespace {

using nlohmann::json;

class CliJson : public ToolDir {
 protected:
  json of(const std::string& words, int code = 0) const {
    const RunResult r = tool(words);
    EXPECT_EQ(r.code, code) << words << "\n" << r.err;
    json j = json::parse(r.out, nullptr, false);
    EXPECT_FALSE(j.is_discarded()) << words << "\n" << r.out;
    return j;
  }
  void refuses(const std::string& words, const std::string& part) const {
    const RunResult r = tool(words);
    EXPECT_EQ(r.code, 2) << words;
    EXPECT_TRUE(r.err.starts_with("uptier: ")) << r.err;
    EXPECT_NE(r.err.find(part), r.err.npos) << words << "\n" << r.err;
    EXPECT_EQ(std::ranges::count(r.err, '\n'), 1) << r.err;
  }
};

TEST_F(CliJson, profile_verbs_tell_programs_what_they_tell_people) {
  run("mix", "a.upf", "--trace a.trace");
  run("mix", "b.upf", "--tier=instrumented");
  json j = of("profile overlap a.upf b.upf --json");
  EXPECT_GT(j["overlap"].get<double>(), 0.1);
  EXPECT_LE(j["overlap"].get<double>(), 1.0);
  EXPECT_TRUE(j["kinds"].contains("edge"));
  EXPECT_FALSE(j["methods"].empty());
  j = of("profile diff a.upf b.upf --json");
  EXPECT_FALSE(j["methods"].empty());
  j = of("profile top -n 2 b.upf --json");
  ASSERT_EQ(j["methods"].size(), 2u);
  EXPECT_GE(j["methods"][0]["time"]["share"].get<double>(),
            j["methods"][1]["time"]["share"].get<double>());
  j = of("profile check a.upf b.upf --json");
  ASSERT_EQ(j["files"].size(), 2u);
  EXPECT_EQ(j["files"][0]["state"], "whole");
  j = of("profile show --calls --json b.upf");
  EXPECT_FALSE(j["calls"].empty());
  j = of("profile show --order --json b.upf");
  EXPECT_FALSE(j["order"].empty());
  j = of("profile show --log --json a.upf");
  EXPECT_FALSE(j["runs"].empty());
  j = of("profile match b.upf " + wasm_path("mix") + " --json");
  EXPECT_GT(j["kept"].get<uint64_t>(), 0u);
  j = of("trace validate a.trace --json");
  EXPECT_EQ(j["valid"], true);
  j = of("trace overlap a.trace a.trace --json");
  EXPECT_EQ(j["overlap"], 1.0);
}

// A kind that one side has not observed has no overlap, which is not the same as an overlap of 0.
TEST_F(CliJson, kinds_that_one_side_has_not_observed_are_said_to_be_so) {
  run("mix", "a.upf", "-O loops=on");
  run("mix", "b.upf");
  for (const std::string files : {"a.upf b.upf", "b.upf a.upf"}) {
    const json j = of("profile overlap " + files + " --json");
    EXPECT_TRUE(j["kinds"]["loop"].is_null()) << j;
    EXPECT_TRUE(j["kinds"]["block"].is_object());
    const std::string side = files.starts_with("a") ? "second" : "first";
    const RunResult r = tool("profile overlap " + files);
    EXPECT_NE(r.out.find("  loop         not observed in the " + side + "\n"), r.out.npos) << r.out;
  }
}

TEST_F(CliJson, damage_is_in_the_json_as_well) {
  write_text("x.upf", "no profile");
  write_text("x.trace", "no trace");
  EXPECT_EQ(of("profile check x.upf --json", 3)["files"][0]["state"], "unreadable");
  EXPECT_EQ(of("trace validate x.trace --json", 3)["valid"], false);
}

TEST_F(CliJson, options_have_values_defaults_and_ranges) {
  const json j = of("options --json -O interval=32");
  const auto row =
      std::ranges::find_if(j["options"], [](const json& r) { return r["name"] == "interval"; });
  ASSERT_NE(row, j["options"].end());
  EXPECT_EQ((*row)["value"], 32);
  EXPECT_EQ((*row)["default"], 16);
  EXPECT_EQ((*row)["low"], 1);
}

TEST_F(CliJson, compile_lists_the_functions_of_a_file) {
  const json j = of("compile " + wasm_path("mix") + " --list --json");
  ASSERT_FALSE(j["functions"].empty());
  const std::string name = j["functions"][0]["name"];
  const RunResult text = tool("compile " + wasm_path("mix") + " --list");
  EXPECT_NE(text.out.find(name), text.out.npos);
  refuses("compile " + wasm_path("mix") + " --json", "--list");
}

TEST_F(CliJson, replay_says_what_differs_and_what_is_no_report) {
  ASSERT_EQ(tool("run --report=json --report-to r.json " + wasm_path("mix")).code, 0);
  const json same = of("replay r.json --json");
  EXPECT_EQ(same["other"], 0);
  const json other = of("replay r.json --json -O speedup=1.01", 1);
  EXPECT_EQ(other["differences"].size(), other["other"].get<size_t>());
  write_text("x.json", "{\"decisions\": [{}]}");
  RunResult r = tool("replay x.json");
  EXPECT_EQ(r.code, 3);
  EXPECT_NE(r.err.find("not a report"), r.err.npos) << r.err;
  EXPECT_EQ(r.err.find("json.exception"), r.err.npos) << r.err;
  write_text("x.json", "{\"decisions\": [");
  r = tool("replay x.json");
  EXPECT_EQ(r.code, 3);
  EXPECT_EQ(r.err.find("json.exception"), r.err.npos) << r.err;
}

TEST_F(CliJson, what_was_probably_meant_is_named) {
  refuses("", "a command is missing; the commands are run");
  refuses("profil show x", "did you mean profile?");
  refuses("profile shwo x", "did you mean show?");
  refuses("run -O intervall=3 x.wasm", "did you mean interval?");
  refuses("profile top --jsno x", "did you mean --json?");
  const RunResult r = tool("compile " + wasm_path("mix") + " -f list_rond");
  EXPECT_NE(r.err.find("did you mean list_round?"), r.err.npos) << r.err;
}

TEST(Nearest, two_letters_at_most_and_one_in_short_words) {
  const std::vector<std::string> words = {"top", "merge", "interval"};
  EXPECT_EQ(tools::nearest("mrege", words), "merge");
  EXPECT_EQ(tools::nearest("intervl", words), "interval");
  EXPECT_EQ(tools::nearest("tpo", words), "top");
  EXPECT_EQ(tools::nearest("txx", words), "");
  EXPECT_EQ(tools::nearest("zzzzz", words), "");
}

TEST(Shortened, marks_what_was_cut_and_keeps_characters_whole) {
  EXPECT_EQ(tools::shortened("short", 8), "short");
  EXPECT_EQ(tools::shortened("longer than that", 8), "longe...");
  EXPECT_EQ(tools::shortened("aaaa\u00e9\u00e9\u00e9", 8), "aaaa...");
}

}  // namespace
}  // namespace uptier::test::cli_json_test
