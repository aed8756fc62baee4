// promote: gates, generations, and rollback.
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "test_paths.h"
#include "tests/support/tool_dir.h"

namespace uptier::profile_promote_test {
namespace {

class Promote : public test::ToolDir {
 protected:
  // Writes a profile of two blocks, as from this number of runs and samples.
  void put(const std::string& name, std::vector<uint64_t> counts, uint64_t runs = 1,
           uint64_t samples = 5000) const {
    MethodProfile m;
    m.name = "f";
    m.schema = Schema::block_schema(2, 1);
    m.counts = std::move(counts);
    m.weigh(1);
    m.sampled_calls = samples;
    Profile p;
    p.methods.emplace(m.key, m);
    ProfileInfo info;
    info.runs = runs;
    write(name, p, info);
  }
  test::RunResult promote(const std::string& words) const {
    return tool("profile promote " + words + " --to cur.upf");
  }
  uint64_t first(const std::string& name) const {
    return read(name).profile.methods.begin()->second.counts[0];
  }
  bool is_there(const std::string& name) const { return std::filesystem::exists(path(name)); }
};

TEST_F(Promote, generations_are_kept_and_rolled_back) {
  for (uint64_t n = 1; n <= 5; ++n) {
    put("c.upf", {1000 + n, 1000});
    const test::RunResult r = promote("c.upf --keep 3");
    ASSERT_EQ(r.code, 0) << r.out << r.err;
    EXPECT_NE(r.out.find("c.upf is cur.upf now"), std::string::npos) << r.out;
    EXPECT_EQ(test::slurp(path("cur.upf")), test::slurp(path("c.upf")));
  }
  EXPECT_EQ(first("cur.upf"), 1005u);
  EXPECT_EQ(first("cur.upf.1"), 1004u);
  EXPECT_EQ(first("cur.upf.2"), 1003u);
  EXPECT_EQ(first("cur.upf.3"), 1002u);
  EXPECT_FALSE(is_there("cur.upf.4"));
  EXPECT_EQ(promote("--roll-back --dry-run").code, 0);
  EXPECT_EQ(first("cur.upf"), 1005u);
  const test::RunResult back = promote("--roll-back");
  EXPECT_EQ(back.code, 0) << back.err;
  EXPECT_NE(back.out.find("cur.upf is the former cur.upf.1"), std::string::npos) << back.out;
  EXPECT_EQ(first("cur.upf"), 1004u);
  EXPECT_EQ(first("cur.upf.1"), 1003u);
  EXPECT_EQ(first("cur.upf.2"), 1002u);
  EXPECT_FALSE(is_there("cur.upf.3"));
  EXPECT_EQ(first("cur.upf.rolled-back"), 1005u);
  EXPECT_EQ(promote("--roll-back --json").code, 0);
  EXPECT_EQ(first("cur.upf"), 1003u);
  EXPECT_EQ(promote("--roll-back").code, 0);
  EXPECT_EQ(first("cur.upf"), 1002u);
  const test::RunResult none = promote("--roll-back");
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.err.find("cur.upf.1"), std::string::npos) << none.err;
  EXPECT_EQ(first("cur.upf"), 1002u);
  size_t files = 0;  // no temporary file is left
  for ([[maybe_unused]] const auto& f : std::filesystem::directory_iterator(dir_)) ++files;
  EXPECT_EQ(files, 3u);
}

TEST_F(Promote, each_gate_says_what_it_wanted) {
  put("good.upf", {900, 100});
  ASSERT_EQ(promote("good.upf --min-overlap 1").code, 0);  // there is nothing to compare with
  const std::string before = test::slurp(path("cur.upf"));
  const auto refused = [&](const std::string& words, const std::string& message) {
    const test::RunResult r = promote(words);
    EXPECT_EQ(r.code, 1);
    EXPECT_NE(r.out.find(message), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("cur.upf is not changed"), std::string::npos) << r.out;
    EXPECT_EQ(test::slurp(path("cur.upf")), before);
    EXPECT_FALSE(is_there("cur.upf.1"));
  };
  put("other.upf", {100, 900});
  refused("other.upf", "gate overlap  FAILED: 0.2000, at least 0.8000 wanted (--min-overlap)");
  refused("good.upf --min-runs 2", "gate runs     FAILED: 1, at least 2 wanted (--min-runs)");
  put("few.upf", {90, 10}, 3, 12);
  refused("few.upf", "gate samples  FAILED: 12, at least 1000 wanted (--min-samples)");
  std::string damaged = test::slurp(path("good.upf"));
  damaged.resize(damaged.size() - 8);
  write_text("cut.upf", damaged);
  refused("cut.upf", "gate whole    FAILED: 0, at least 1 wanted");
  EXPECT_EQ(promote("other.upf --min-overlap 0.19").code, 0);
  EXPECT_EQ(first("cur.upf"), 100u);
  EXPECT_EQ(first("cur.upf.1"), 900u);
}

TEST_F(Promote, dry_run_and_json_say_the_same_and_change_nothing) {
  put("a.upf", {900, 100});
  put("b.upf", {890, 110}, 4, 2000);
  ASSERT_EQ(promote("a.upf").code, 0);
  const test::RunResult dry = promote("b.upf --dry-run --json");
  EXPECT_EQ(dry.code, 0) << dry.err;
  nlohmann::json j = nlohmann::json::parse(dry.out, nullptr, false);
  EXPECT_EQ(j["passed"], true);
  EXPECT_EQ(j["promoted"], false);
  ASSERT_EQ(j["gates"].size(), 4u);
  EXPECT_EQ(j["gates"][1]["value"], 4);
  EXPECT_EQ(j["gates"][2]["value"], 2000);
  EXPECT_NEAR(j["gates"][3]["value"].get<double>(), 0.99, 1e-9);
  EXPECT_EQ(first("cur.upf"), 900u);
  j = nlohmann::json::parse(promote("b.upf --json").out, nullptr, false);
  EXPECT_EQ(j["promoted"], true);
  EXPECT_EQ(first("cur.upf"), 890u);
  EXPECT_EQ(promote("").code, 2);
}

// Whatever the form of the candidate.
TEST_F(Promote, loses_nothing) {
  run("objects", "a.upf", "--interval=1");
  ASSERT_EQ(tool("profile export a.upf --format=tsv -o a.tsv").code, 0);
  const ProfileFile a = read("a.upf");
  ASSERT_FALSE(a.calls.shapes.empty() || a.calls.graph.empty() || a.calls.first.empty());
  ASSERT_EQ(promote("a.tsv --min-samples 1").code, 0);
  EXPECT_EQ(read("cur.upf").profile, a.profile);
  EXPECT_EQ(read("cur.upf").calls, a.calls);
  EXPECT_EQ(read("cur.upf").info, a.info);
  ASSERT_EQ(promote("a.upf --min-samples 1").code, 0);
  EXPECT_EQ(test::slurp(path("cur.upf")), test::slurp(path("a.upf")));
  // Other commands that transform a profile keep everything that they can.
  ASSERT_EQ(tool("profile merge a.tsv -o m.upf").code, 0);
  EXPECT_EQ(read("m.upf").calls, a.calls);
  ASSERT_EQ(tool("profile top a.upf -n 5 -o t.upf").code, 0);
  const ProfileFile t = read("t.upf");
  ASSERT_EQ(t.profile.methods.size(), 5u);
  EXPECT_EQ(t.calls.shapes.size(), 5u);
  for (const auto& [key, shape] : t.calls.shapes) EXPECT_EQ(shape, a.calls.shapes.at(key));
  ASSERT_EQ(tool("profile merge a.upf m.upf --force -o aa.upf").code, 0);
  ASSERT_EQ(tool("profile diff a.upf aa.upf -o d.upf").code, 0);
}

// Rows and traces are converted to profile files; a target that is no regular file is left alone.
TEST_F(Promote, takes_every_kind_of_profile) {
  put("a.upf", {900, 100});
  ASSERT_EQ(tool("profile export a.upf --format=tsv -o a.tsv").code, 0);
  ASSERT_EQ(promote("a.tsv").code, 0);
  EXPECT_EQ(read("cur.upf").profile, read("a.upf").profile);
  std::filesystem::create_symlink(path("a.upf"), path("link"));
  const test::RunResult r = tool("profile promote a.upf --to link");
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("link: it is a symbolic link"), std::string::npos) << r.err;
}

// A reader sees a complete profile at any time during promotions.
TEST_F(Promote, readers_never_miss_the_profile) {
  put("a.upf", {900, 100});
  put("b.upf", {800, 100});
  ASSERT_EQ(promote("a.upf").code, 0);
  const test::RunResult r =
      in_dir("( for i in 1 2 3 4 5 6 7 8 9 10; do " UPTIER_TOOL
             " profile promote b.upf --to cur.upf; " UPTIER_TOOL
             " profile promote --roll-back --to cur.upf; done > promote.log 2>&1 ) & "
             "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do " UPTIER_TOOL
             " profile check cur.upf || exit 9; done; wait");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_EQ(test::slurp(path("promote.log")).find("FAILED"), std::string::npos);
}

}  // namespace
}  // namespace uptier::profile_promote_test
