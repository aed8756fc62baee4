// uptier profile diff and overlap: what lies beyond the noise, for people, programs and CI.
#include <nlohmann/json.hpp>

#include "tests/support/tool_dir.h"

namespace uptier::profile_diff_test {
namespace {

using nlohmann::json;
using test::RunResult;

// A method with its executions and its stack samples of 10 ms.
struct Row {
  std::string name;
  uint64_t executions = 0;
  uint64_t samples = 0;
};

ProfileFile profile_of(const std::vector<Row>& rows, uint64_t module = 1) {
  ProfileFile file;
  uint32_t function =
      static_cast<uint32_t>(module);  // so that keys of modules differ in both parts
  for (const Row& r : rows) {
    MethodProfile m;
    m.key = {module, function++};
    m.name = r.name;
    m.schema = Schema::block_schema(1, 7);
    m.counts = {r.executions};
    m.weigh(1);
    m.calls = m.sampled_calls = r.executions;
    if (r.samples != 0) {
      file.calls.time.add({{TimePlace::kMethod, m.key}}, r.samples, r.samples * 10'000'000);
    }
    file.profile.methods.emplace(m.key, std::move(m));
  }
  file.calls.time.asked_ns = file.calls.time.sampled_ns;
  file.calls.time.squares = file.calls.time.sampled_ns / 10'000'000 * 100'000'000;
  file.info.runs = 1;
  file.info.weight = ProfileInfo::kRunWeight;
  return file;
}

class ProfileDiff : public test::ToolDir {
 protected:
  void put(const std::string& name, const ProfileFile& file) const {
    ASSERT_TRUE(profile::replace_file(path(name), profile_to_file(file)).ok());
  }
  // hot has 2 % of the time before and 7 % after; executions do not change.
  void put_change() const {
    put("a.upf", profile_of({{"main", 100, 600}, {"hot", 50, 20}, {"rest", 50, 380}}));
    put("b.upf", profile_of({{"main", 100, 570}, {"hot", 50, 70}, {"rest", 50, 360}}));
  }
  json of(const std::string& words) const {
    const RunResult r = tool(words);
    EXPECT_EQ(r.err, "") << words;
    json j = json::parse(r.out, nullptr, false);
    EXPECT_FALSE(j.is_discarded()) << r.out;
    return j;
  }
  void ends(int code, const std::string& words, const std::string& why = "") const {
    const RunResult r = tool("profile " + words);
    EXPECT_EQ(r.code, code) << words << "\n" << r.out << r.err;
    EXPECT_NE(r.err.find(why), std::string::npos) << words << "\n" << r.err;
  }
};

TEST_F(ProfileDiff, a_change_beyond_the_noise_is_marked) {
  put_change();
  const RunResult r = tool("profile diff a.upf b.upf");
  EXPECT_EQ(r.code, 0);
  EXPECT_NE(r.out.find("time: 1 of 3 methods moved beyond the noise"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("executions: no method of 3 moved beyond the noise"), std::string::npos);
  const size_t hot = r.out.find("hot ");
  EXPECT_LT(hot, r.out.find("main "));  // what is beyond comes first
  EXPECT_NE(r.out.substr(hot, r.out.find('\n', hot) - hot).find("+5.00"), std::string::npos);
  EXPECT_NE(r.out.find("beyond the noise\nmain"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("One file on each side"), std::string::npos);
  const RunResult overlap = tool("profile overlap a.upf b.upf");
  EXPECT_TRUE(overlap.out.starts_with("overlap 1.000000;")) << overlap.out;
  EXPECT_NE(overlap.out.find("moved beyond the noise: hot +5.00 (noise "), std::string::npos);
}

TEST_F(ProfileDiff, json_has_shares_and_noise) {
  put_change();
  for (const char* verb : {"diff", "overlap"}) {
    const json j = of(std::string("profile ") + verb + " a.upf b.upf --json --threshold 3");
    EXPECT_EQ(j["overlap"], 1.0);
    EXPECT_EQ(j["changed"], true);
    EXPECT_EQ(j["threshold"], 3.0);
    ASSERT_EQ(j["changes"].size(), 2u);
    const json& time = j["changes"][0];
    EXPECT_EQ(time["by"], "time");
    EXPECT_EQ(time["error"], 0.025);
    EXPECT_EQ(time["tested"], 3);
    EXPECT_EQ(time["beyond"], 1);
    const json& hot = time["methods"][0];
    EXPECT_EQ(hot["name"], "hot");
    EXPECT_NEAR(hot["share_a"].get<double>(), 0.02, 1e-9);
    EXPECT_NEAR(hot["moved"].get<double>(), 0.05, 1e-9);
    EXPECT_EQ(hot["beyond"], true);
    EXPECT_GT(hot["noise"].get<double>(), 0.02);
    EXPECT_LT(hot["noise"].get<double>(), 0.04);
    EXPECT_EQ(j["changes"][1]["by"], "executions");
  }
}

TEST_F(ProfileDiff, exit_codes_are_for_ci) {
  put_change();
  for (const char* verb : {"diff", "overlap"}) {
    const std::string v = verb;
    ends(0, v + " a.upf b.upf");
    ends(1, v + " a.upf b.upf --threshold 3");
    ends(1, v + " a.upf b.upf --threshold=0 --markdown");
    ends(0, v + " a.upf b.upf --threshold 6");
    ends(0, v + " a.upf a.upf --threshold 0");
    ends(0, v + " a.upf b.upf --threshold 3 --by executions");
    ends(2, v + " a.upf missing --threshold 3", "missing: cannot open the file");
    ends(1, v + " a.upf missing", "missing: cannot open the file");
    ends(2, v + " a.upf b.upf --threshold=-1", "--threshold");
    write_text("junk", "hello\n");
    ends(3, v + " a.upf junk --threshold 3", "junk: neither a profile file");
  }
}

TEST_F(ProfileDiff, wrong_words_are_explained) {
  put_change();
  for (const char* verb : {"diff", "overlap"}) {
    const std::string v = verb;
    ends(2, v + " a.upf", "two files are needed: A and B, or --before FILES --after FILES");
    ends(2, v, "two files are needed");
    ends(2, v + " --before a.upf", "--after is missing: each side needs one file at least");
    ends(2, v + " a.upf --after b.upf", "a.upf: files are given as A and B, or after --before");
    ends(2, v + " a.upf b.upf --json --markdown", "--");
    ends(2, v + " a.upf b.upf --by calls", "--by");
  }
  ends(2, "diff --before a.upf --after b.upf -o rest.upf", "-o: the rest is B minus A");
  put("untimed.upf", profile_of({{"main", 100, 0}}));
  ends(1, "diff a.upf untimed.upf --by time", "untimed.upf: has no time");
  ends(2, "diff a.upf untimed.upf --by time --threshold 1", "untimed.upf: has no time");
  EXPECT_EQ(of("profile diff a.upf untimed.upf --json")["changes"].size(), 1u);
  put("empty.upf", profile_of({}));
  ends(2, "diff a.upf empty.upf --threshold 1", "empty.upf: the profile is empty");
  ends(0, "diff a.upf empty.upf");
}

// A program that was built again has new keys.
TEST_F(ProfileDiff, methods_of_another_build_are_found_by_name) {
  put("a.upf", profile_of({{"main", 600}, {"gone", 100}, {"hot", 300}}, 1));
  put("b.upf", profile_of({{"hot", 300}, {"fresh", 100}, {"main", 600}}, 2));
  const json j = of("profile diff a.upf b.upf --json");
  EXPECT_EQ(j["added"], json({"fresh"}));
  EXPECT_EQ(j["gone"], json({"gone"}));
  EXPECT_NEAR(j["overlap"].get<double>(), 0.9, 1e-9);
  ASSERT_EQ(j["changes"][0]["methods"].size(), 4u);
  EXPECT_EQ(j["changes"][0]["beyond"], 2);  // the counts are exact
  const std::string text = tool("profile diff a.upf b.upf").out;
  EXPECT_NE(text.find("added: fresh\n"), std::string::npos) << text;
  EXPECT_NE(text.find("gone: gone\n"), std::string::npos);
  const std::string table = tool("profile diff a.upf b.upf --markdown").out;
  EXPECT_NE(table.find("Added: `fresh`.\n"), std::string::npos) << table;
}

// Runs of one side that differ by as much as the sides do.
TEST_F(ProfileDiff, several_files_say_what_runs_differ_by) {
  std::string before = " --before", after = " --after";
  const uint64_t hot[] = {150, 250, 200, 250, 210, 300};
  for (int i = 0; i < 6; ++i) {
    const std::string name = std::to_string(i) + ".upf";
    put(name, profile_of({{"main", 1000 - hot[i], 1000 - hot[i]}, {"hot", hot[i], hot[i]}}));
    (i < 3 ? before : after) += " " + name;
  }
  EXPECT_EQ(of("profile diff 0.upf 5.upf --json")["changes"][1]["beyond"], 2);
  const json j = of("profile diff --json --threshold 0" + before + after);
  EXPECT_EQ(j["changed"], false);
  EXPECT_EQ(j["changes"][0]["files_a"], 3);
  EXPECT_NEAR(j["changes"][1]["methods"][0]["moved"].get<double>() +
                  j["changes"][1]["methods"][1]["moved"].get<double>(),
              0, 1e-9);
  EXPECT_EQ(tool("profile diff" + before + after).out.find("One file on each side"),
            std::string::npos);
}

TEST_F(ProfileDiff, markdown_is_a_table_whatever_names_are) {
  put("a.upf", profile_of({{"main", 250}, {"a|b`c", 500}, {"rest", 250}}));
  put("b.upf", profile_of({{"main", 150}, {"a|b`c", 700}, {"rest", 150}}));
  const std::string text = tool("profile diff a.upf b.upf --markdown --top 1").out;
  EXPECT_EQ(text,
            "**executions: 3 of 3 methods moved beyond the noise**\n\n"
            "| method | before | after | moved | noise | |\n|:--|--:|--:|--:|--:|:--|\n"
            "| `a\\|b'c` | 50.00 % | 70.00 % | **+20.00** | 0.00 | beyond the noise |\n\n"
            "One file on each side: the noise is assumed; several files after --before and "
            "--after measure it.\n");
  EXPECT_TRUE(
      tool("profile overlap a.upf b.upf --markdown").out.starts_with("Overlap: **80.00 %**\n"));
}

TEST_F(ProfileDiff, the_rest_is_read_from_pipes_too) {
  put_change();
  const std::string t = UPTIER_TOOL;
  ASSERT_EQ(in_dir("cat a.upf | " + t + " profile diff - b.upf -o rest.upf").code, 0);
  ASSERT_EQ(tool("profile diff a.upf b.upf -o plain.upf").code, 0);
  EXPECT_EQ(read("rest.upf").profile, read("plain.upf").profile);
}

}  // namespace
}  // namespace uptier::profile_diff_test
