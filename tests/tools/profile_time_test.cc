// Processor time in a saved profile: the same numbers in every readable form.
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/tool_dir.h"

namespace uptier::profile_time_tool_test {
namespace {

using nlohmann::json;

// The file of a run that sampled often, so that several methods have time.
class TimeTool : public test::ToolDir {
 protected:
  void SetUp() override {
    ToolDir::SetUp();
    const test::RunResult r =
        tool("run --sample=10000 --profile p.upf " + test::wasm_path("mix") + " 1500");
    ASSERT_EQ(r.code, 0) << r.err;
    time_ = read("p.upf").calls.time;
    ASSERT_GT(time_.sampled_ns, 0u);
  }
  json parsed(const std::string& words) const {
    const test::RunResult r = tool(words);
    EXPECT_EQ(r.code, 0) << r.err;
    return json::parse(r.out, nullptr, false);
  }
  TimeProfile time_;
};

TEST_F(TimeTool, top_ranks_by_time_and_shares_add_up) {
  const json rows = parsed("profile top p.upf -n 1000 --json")["methods"];
  double sum = 0, before = 1;
  for (const json& r : rows) {
    const json& t = r["time"];
    EXPECT_LE(t["share"], before);
    EXPECT_LE(t["low"], t["share"]);
    EXPECT_GE(t["high"], t["share"]);
    EXPECT_GE(t["total_share"], t["share"]);
    before = t["share"];
    sum += before;
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  const std::string text = tool("profile top p.upf -n 3").out;
  EXPECT_NE(text.find("95 % interval"), std::string::npos) << text;
  EXPECT_NE(text.find(rows[0]["name"].get<std::string>()), std::string::npos) << text;
}

TEST_F(TimeTool, show_has_the_tree) {
  const std::string text = tool("profile show --time --least 0 p.upf").out;
  EXPECT_NE(text.find("call path\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  list_round\n"), std::string::npos) << text;
  const json tree = parsed("profile show --time --json p.upf");
  uint64_t sum = 0;
  for (const json& p : tree["paths"]) sum += p["total_ns"].get<uint64_t>();
  EXPECT_EQ(sum, time_.sampled_ns);
}

TEST_F(TimeTool, folded_stacks_have_all_of_the_time) {
  std::istringstream lines(tool("profile export p.upf --format=folded").out);
  uint64_t micros = 0, count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    micros += std::stoull(line.substr(line.rfind(' ') + 1));
  }
  EXPECT_NEAR(static_cast<double>(micros), static_cast<double>(time_.sampled_ns) / 1000,
              static_cast<double>(count));
  const std::string blocks = tool("profile export p.upf --format=folded --by=executions").out;
  EXPECT_NE(blocks.find(";block_"), std::string::npos);
}

TEST_F(TimeTool, speedscope_has_a_weight_for_each_stack) {
  const json s = parsed("profile export p.upf --format=speedscope");
  const json& p = s["profiles"][0];
  ASSERT_EQ(p["samples"].size(), p["weights"].size());
  uint64_t sum = 0;
  for (const json& w : p["weights"]) sum += w.get<uint64_t>();
  EXPECT_EQ(sum, time_.sampled_ns);
  EXPECT_EQ(p["endValue"], sum);
  for (const json& stack : p["samples"]) {
    for (const json& f : stack) EXPECT_LT(f, s["shared"]["frames"].size());
  }
}

TEST_F(TimeTool, runs_add_up_and_what_a_file_has_comes_back_from_rows) {
  ASSERT_EQ(tool("profile export p.upf --format=tsv -o p.tsv").code, 0);
  ASSERT_EQ(tool("profile import p.tsv -o back.upf").code, 0);
  EXPECT_EQ(read("back.upf").calls.time, time_);
  ASSERT_EQ(tool("run --sample=10000 --profile q.upf " + test::wasm_path("mix") + " 1500").code, 0);
  ASSERT_EQ(tool("profile merge p.upf q.upf -o both.upf").code, 0);
  TimeProfile both = time_;
  both += read("q.upf").calls.time;
  EXPECT_EQ(read("both.upf").calls.time, both);
}

TEST_F(TimeTool, without_time_the_cure_is_named) {
  ASSERT_EQ(tool("run -O sample_hz=0 --profile n.upf " + test::wasm_path("mix") + " 100").code, 0);
  EXPECT_TRUE(read("n.upf").calls.time.empty());
  for (const char* words : {"profile show --time n.upf", "profile export n.upf --format=speedscope",
                            "profile export n.upf --format=folded --by=time"}) {
    const test::RunResult r = tool(words);
    EXPECT_EQ(r.code, 1) << words;
    EXPECT_NE(r.err.find("run --sample"), std::string::npos) << r.err;
  }
  const std::string top = tool("profile top n.upf").out;
  EXPECT_NE(top.find("executions"), std::string::npos);
  EXPECT_EQ(top.find("95 % interval"), std::string::npos);
}

TEST_F(TimeTool, a_saved_profile_samples_by_itself) {
  ASSERT_EQ(tool("run --profile d.upf " + test::wasm_path("mix") + " 3000").code, 0);
  EXPECT_GT(read("d.upf").calls.time.asked_ns, 0u);
}

}  // namespace
}  // namespace uptier::profile_time_tool_test
