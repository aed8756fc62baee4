// uptier replay as a process: replays the decisions of a report.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test_paths.h"
#include "tests/support/program_runs.h"

namespace uptier::test::replay_tool_test {
namespace {

class ReplayTool : public testing::Test {
 protected:
  ReplayTool() {
    char name[] = "/tmp/uptier-replay-XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~ReplayTool() override { std::filesystem::remove_all(dir_); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ + "/" + name) << text;
    return dir_ + "/" + name;
  }
  // Runs a program and saves its report.
  std::string report(const std::string& options) const {
    RunResult r = run_command(UPTIER_TOOL " run --report=json " + options + " " + wasm_path("mix"));
    EXPECT_EQ(r.code, 0) << r.err;
    return file("report.json", r.err);
  }
  static RunResult replay(const std::string& arguments) {
    return run_command(UPTIER_TOOL " replay " + arguments);
  }
  std::string dir_;
};

TEST_F(ReplayTool, with_its_options_a_run_decides_the_same) {
  std::string path = report("");
  RunResult r = replay(path);
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find(" decisions are the same, 0 differ; "), std::string::npos) << r.out;
  EXPECT_FALSE(r.out.starts_with("0 ")) << r.out;
}

TEST_F(ReplayTool, with_others_it_says_what_they_would_have_said) {
  std::string path = report("--policy=always");
  EXPECT_EQ(replay("--policy=always " + path).code, 0);
  RunResult r = replay("--policy=never " + path);
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.out.find("now  keep               policy never\n"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("was  specialize"), std::string::npos) << r.out;
}

TEST_F(ReplayTool, settings_that_changed_count_from_there_on) {
  const std::string head = R"({"decisions":[)";
  auto record = [](int n, const std::string& action, const std::string& reason,
                   const std::string& inputs) {
    return R"({"sequence":)" + std::to_string(n) + R"(,"method_name":"f","action":")" + action +
           R"(","reason":")" + reason + R"(","priority":0,"inputs":")" + inputs + "\"}";
  };
  const std::string exits = "exits=200 retries=0 in_loop=0 declared=1";
  const std::string made = record(1, "keep", "200 exits, the limit is 100 after 0 retries", exits);
  const std::string set = record(2, "set", "exit_limit=500", "");
  const std::string later = record(3, "keep", "200 exits, the limit is 500 after 0 retries", exits);
  RunResult r = replay(file("a.json", head + made + "," + set + "," + later + "]}"));
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_EQ(r.out, "2 decisions are the same, 0 differ; 1 records are events or settings\n");
  EXPECT_EQ(replay(file("b.json", head + set + "," + made + "]}")).code, 1);
}

TEST_F(ReplayTool, what_is_no_report_is_refused) {
  struct Bad {
    const char* text;
    const char* says;
  };
  for (const Bad& bad :
       {Bad{"", "not JSON, from byte"}, Bad{"{}", "decisions"}, Bad{"[1]", "but not a report"},
        Bad{R"({"decisions":[{"sequence":"x"}]})", "but not a report"},
        Bad{R"({"decisions":[{"sequence":7,"method_name":"f","action":"keep",)"
            R"("reason":"","priority":0,"inputs":"exits=1 frames=2"}]})",
            "decision 7: inputs: frames: there is no such field"}}) {
    RunResult r = replay(file("bad.json", bad.text));
    EXPECT_EQ(r.code, 3) << bad.text;
    EXPECT_NE(r.err.find(bad.says), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("bad.json"), std::string::npos) << r.err;
  }
  EXPECT_EQ(replay(dir_ + "/none.json").code, 1);
}

}  // namespace
}  // namespace uptier::test::replay_tool_test
