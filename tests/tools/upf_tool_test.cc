// Saved profiles in the tool: warm starts, merges, exports.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "profile/upf/file.h"
#include "test_paths.h"
#include "tests/support/program_runs.h"
#include "uptier/profile_file.h"

namespace uptier::upf_tool_test {
namespace {

using test::run_command;
using test::run_tool;
using test::RunResult;

class UpfTool : public testing::Test {
 protected:
  UpfTool() {
    char name[] = "/tmp/uptier-upf-XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~UpfTool() override { std::filesystem::remove_all(dir_); }

  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  ProfileFile read(const std::string& name) const {
    const std::string bytes = test::slurp(path(name));
    Result<ProfileFile> file = profile_from_file(std::as_bytes(std::span(bytes)));
    EXPECT_TRUE(file.ok()) << file.error().message;
    return file.ok() ? std::move(*file) : ProfileFile{};
  }
  // Runs an example with a saved profile; checks that its output is the usual one.
  nlohmann::json run(const std::string& program, const std::string& file,
                     const std::string& more = "") const {
    const RunResult r = run_tool("run --report=json --profile " + path(file) + " " + more + " " +
                                 test::wasm_path(program));
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out, test::expected_output(program));
    return nlohmann::json::parse(r.err, nullptr, false);
  }
  std::string dir_;
};

// Fixed rates: decisions do not depend on the current speed of the machine.
constexpr const char* kFixedRates = "-O measure_rates=off";

TEST_F(UpfTool, what_was_hot_is_optimized_at_its_first_call) {
  const nlohmann::json cold = run("objects", "p.upf", kFixedRates);
  EXPECT_EQ(cold["saved"]["compiled"], 0);
  const nlohmann::json warm = run("objects", "p.upf", kFixedRates);
  EXPECT_EQ(warm["saved"]["runs"], 1);
  EXPECT_GE(warm["saved"]["compiled"], 1);
  EXPECT_EQ(warm["saved"]["stale"], 0);
  // The policy makes the decisions; some come later, when compilation has turned out cheaper.
  uint64_t decided = 0;
  for (const auto& d : warm["decisions"]) {
    const std::string reason = d["reason"];
    decided += reason.find("in the saved profile") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(decided, warm["saved"]["compiled"]);
  EXPECT_EQ(read("p.upf").info.runs, 2u);
  // This holds run after run: trusted counts do not fade.
  for (int i = 0; i < 8; ++i) run("objects", "p.upf", kFixedRates);
  const nlohmann::json later = run("objects", "p.upf", kFixedRates);
  EXPECT_GE(later["saved"]["compiled"], 1);
  EXPECT_EQ(later["saved"]["runs"], 10);
}

// `drift` of nbody has one block: none of its calls is ever sampled, because every call is counted.
TEST_F(UpfTool, a_hot_method_of_one_block_is_optimized_at_its_first_call) {
  for (int i = 0; i < 3; ++i) run("nbody", "p.upf", kFixedRates);
  const RunResult r = run_command(UPTIER_TOOL " profile show --timeline --json " + path("p.upf"));
  const nlohmann::json timeline = nlohmann::json::parse(r.out, nullptr, false)["runs"].back();
  ASSERT_TRUE(timeline.is_object()) << r.out << r.err;
  std::vector<std::string> tiers;
  for (const auto& v : timeline["versions"]) {
    if (v["method"] == "drift") tiers.push_back(v["tier"]);
  }
  ASSERT_FALSE(tiers.empty());
  EXPECT_EQ(tiers.front(), "optimized");
}

// In code that does not count, estimates are too low, and the profile says so.
TEST_F(UpfTool, what_ran_in_code_that_counts_nothing_is_marked) {
  run("objects", "auto.upf", "--policy=always -O workers=0 -O count_optimized=off");
  run("objects", "all.upf", "--policy=never");
  const auto marked = [&](const std::string& file) {
    const RunResult r = run_command(UPTIER_TOOL " profile show --json " + path(file));
    const nlohmann::json shown = nlohmann::json::parse(r.out);
    size_t n = 0;
    for (const auto& m : shown["methods"]) n += m["behind"].get<bool>() ? 1 : 0;
    return n;
  };
  EXPECT_GT(marked("auto.upf"), 0u);
  EXPECT_EQ(marked("all.upf"), 0u);
  for (const std::string words : {"show auto.upf", "top auto.upf", "diff auto.upf all.upf"}) {
    const RunResult r = run_command("cd " + dir_ + "; " UPTIER_TOOL " profile " + words);
    EXPECT_NE(r.out.find("  behind\n"), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("behind: ran in optimized code, which does not count"), std::string::npos);
  }
  const RunResult r = run_command(UPTIER_TOOL " profile show " + path("all.upf"));
  EXPECT_EQ(r.out.find("behind"), std::string::npos) << r.out;
  // A sum is marked if one of its parts is.
  run_command("cd " + dir_ + "; " UPTIER_TOOL " profile merge -o sum.upf all.upf auto.upf");
  EXPECT_EQ(marked("sum.upf"), marked("auto.upf"));
}

TEST_F(UpfTool, environment_is_enough) {
  const std::string command =
      "UPTIER_PROFILE=" + path("p.upf") + " " UPTIER_TOOL " run " + test::wasm_path("mix");
  EXPECT_EQ(run_command(command).out, test::expected_output("mix"));
  EXPECT_GT(read("p.upf").profile.methods.size(), 10u);
  struct stat info = {};
  ASSERT_EQ(stat(path("p.upf").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(UpfTool, every_tier_and_stress_gives_the_same_answers_with_any_profile) {
  run("mix", "mix.upf");
  for (const char* more : {"--tier=baseline", "--tier=optimized", "--tier=instrumented",
                           "--policy=never", "--policy=always", "--stress=osr=all,copy=every:3",
                           "-O workers=0", "-O profile_decay=0", "--interval=1"}) {
    run("mix", "mix.upf", more);
  }
  // Counts that no run could have produced.
  ProfileFile file = read("mix.upf");
  for (auto& [key, m] : file.profile.methods) {
    for (size_t i = 0; i < m.counts.size(); ++i) m.counts[i] = i % 2 == 0 ? UINT64_MAX : 0;
    m.weigh(1);
  }
  ASSERT_TRUE(
      profile::replace_file(path("mad.upf"), profile_to_file(file.profile, file.info)).ok());
  run("mix", "mad.upf");
}

TEST_F(UpfTool, profile_of_other_code_is_dropped_with_a_message) {
  run("objects", "p.upf");
  ProfileFile file = read("p.upf");
  size_t changed = 0;
  for (auto& [key, m] : file.profile.methods) {
    if (m.name != "move_all") continue;
    m.schema.cfg_hash ^= 1;
    ++changed;
  }
  ASSERT_EQ(changed, 1u);
  ASSERT_TRUE(profile::replace_file(path("p.upf"), profile_to_file(file.profile, file.info)).ok());
  const RunResult r =
      run_tool("run --report --profile " + path("p.upf") + " " + test::wasm_path("objects"));
  EXPECT_EQ(r.out, test::expected_output("objects"));
  EXPECT_NE(
      r.err.find(
          "1 methods have other code than when they were profiled: their profiles were dropped"),
      std::string::npos)
      << r.err;
  EXPECT_NE(r.err.find("the saved profile belongs to other code: its hash is 0x"),
            std::string::npos);
  EXPECT_NE(r.err.find("1 stale"), std::string::npos);
  // The saved profile is of the current code again.
  EXPECT_EQ(run("objects", "p.upf")["saved"]["stale"], 0);
}

TEST_F(UpfTool, methods_of_a_changed_module_are_found_by_name_and_code) {
  run("objects", "p.upf");
  ProfileFile file = read("p.upf");
  Profile moved;
  for (auto& [key, m] : file.profile.methods) {
    m.key.module_key ^= 0x55;
    moved.methods.emplace(m.key, m);
  }
  ASSERT_TRUE(profile::replace_file(path("p.upf"), profile_to_file(moved, file.info)).ok());
  // The number depends on the current speed of compilation.
  const nlohmann::json warm = run("objects", "p.upf");
  EXPECT_GE(warm["saved"]["recovered"], 10);
  EXPECT_GE(warm["saved"]["compiled"], 1);
  const nlohmann::json again = run("objects", "p.upf");
  EXPECT_EQ(again["saved"]["recovered"], 0);
  EXPECT_GE(again["saved"]["compiled"], 1);
}

TEST_F(UpfTool, what_is_no_profile_is_left_alone) {
  std::ofstream(path("notes.txt")) << "not a profile";
  const RunResult r = run_tool("run --profile " + path("notes.txt") + " " + test::wasm_path("mix"));
  EXPECT_EQ(r.code, 1) << "the profile is not saved";
  EXPECT_EQ(r.out, test::expected_output("mix"));
  EXPECT_NE(r.err.find("left alone"), std::string::npos) << r.err;
  EXPECT_EQ(test::slurp(path("notes.txt")), "not a profile");
  std::filesystem::create_symlink(path("notes.txt"), path("link"));
  EXPECT_NE(run_tool("run --profile " + path("link") + " " + test::wasm_path("mix")).err, "");
  EXPECT_EQ(test::slurp(path("notes.txt")), "not a profile");
}

TEST_F(UpfTool, processes_that_end_together_lose_nothing) {
  const std::string one = UPTIER_TOOL " run -O profile_decay=1 --profile " + path("p.upf") + " " +
                          test::wasm_path("mix") + " >/dev/null & ";
  for (int round = 0; round < 3; ++round) run_command(one + one + one + one + "wait");
  const ProfileFile file = read("p.upf");
  EXPECT_EQ(file.info.runs, 12u);
  EXPECT_EQ(file.info.uploads.size(), 12u);
  EXPECT_TRUE(file.warnings.empty());
  size_t files = 0;
  for ([[maybe_unused]] const auto& f : std::filesystem::directory_iterator(dir_)) ++files;
  EXPECT_EQ(files, 1u);
}

TEST_F(UpfTool, killed_at_any_moment_the_file_is_whole) {
  run("mix", "p.upf");
  for (int i = 0; i < 20; ++i) {
    const std::string command = "timeout -s KILL 0.0" + std::to_string(10 + 4 * i) +
                                " " UPTIER_TOOL " run --profile " + path("p.upf") + " " +
                                test::wasm_path("mix");
    run_command(command + " >/dev/null");
    const RunResult check = run_tool("profile check " + path("p.upf"));
    ASSERT_EQ(check.code, 0) << check.err << check.out;
  }
}

TEST_F(UpfTool, names_have_patterns) {
  run("mix", "%h-%p-%t-%c.upf");
  run("mix", "run%c.upf");
  run("mix", "run%c.upf");
  EXPECT_EQ(read("run0.upf").info.runs, 1u);
  EXPECT_EQ(read("run1.upf").info.runs, 1u);
  EXPECT_EQ(run_tool("run --profile a%x.upf " + test::wasm_path("mix")).code, 2);
  size_t files = 0;
  for ([[maybe_unused]] const auto& f : std::filesystem::directory_iterator(dir_)) ++files;
  EXPECT_EQ(files, 3u);
}

TEST(UpfName, expands) {
  const auto name = [](const char* pattern, int taken) {
    return profile::expand_name(pattern, {7, "host", 99}, [taken](const std::string& n) {
      return n.find_first_of("0123456789") != std::string::npos && n.back() - '0' < taken;
    });
  };
  EXPECT_EQ(name("a%p-%h-%t%%", 0), "a7-host-99%");
  EXPECT_EQ(name("x%c", 3), "x3");
  EXPECT_TRUE(profile::check_name("a%p%h%t%c%%").ok());
  for (const char* bad : {"%", "a%", "%x", "%%%"})
    EXPECT_FALSE(profile::check_name(bad).ok()) << bad;
}

TEST_F(UpfTool, merge_is_that_of_the_library_and_idempotent) {
  run("mix", "a.upf");
  run("mix", "b.upf");
  run("objects", "c.upf");
  const auto merge_of = [&](const std::string& files) {
    const RunResult r =
        run_command("cd " + dir_ + " && " UPTIER_TOOL " profile merge -o sum " + files);
    EXPECT_EQ(r.code, 0) << r.err;
    return read("sum");
  };
  const ProfileFile abc = merge_of("a.upf b.upf c.upf");
  Profile expected = read("a.upf").profile;
  merge(expected, read("b.upf").profile);
  merge(expected, read("c.upf").profile);
  EXPECT_EQ(abc.profile, expected);
  EXPECT_EQ(abc.info.runs, 3u);
  EXPECT_EQ(merge_of("c.upf a.upf b.upf").profile, expected);
  EXPECT_EQ(merge_of("a.upf a.upf b.upf c.upf c.upf").info, abc.info);
  run_command("cd " + dir_ + " && cat a.upf b.upf > ab.upf && cat b.upf c.upf > bc.upf");
  EXPECT_EQ(merge_of("ab.upf c.upf a.upf").profile, expected);
  EXPECT_EQ(read("ab.upf").profile, merge_of("a.upf b.upf").profile);
  const ProfileFile ab = merge_of("a.upf b.upf");
  std::filesystem::rename(path("sum"), path("ab.upf"));
  merge_of("b.upf c.upf");
  std::filesystem::rename(path("sum"), path("bc.upf"));
  const RunResult conflict =
      run_command("cd " + dir_ + " && " UPTIER_TOOL " profile merge -o sum ab.upf bc.upf");
  EXPECT_EQ(conflict.code, 1);
  EXPECT_NE(conflict.err.find("shares some runs"), std::string::npos);
  // Weights.
  Profile weighted = read("a.upf").profile;
  ASSERT_TRUE(scale(weighted, 3, 1).ok());
  EXPECT_EQ(merge_of("3@a.upf").profile, weighted);
}

TEST_F(UpfTool, half_life_weighs_the_old_less) {
  MethodProfile m;
  m.name = "f";
  m.schema = Schema::block_schema(1, 1);
  m.counts = {1000};
  m.weigh(1);
  Profile p;
  p.methods.emplace(m.key, m);
  ProfileInfo info;
  for (const uint64_t day : {10, 12}) {
    info.time = day * 86400;
    info.uploads = {{info.time, day}};
    const std::string name = path("day" + std::to_string(day));
    ASSERT_TRUE(profile::replace_file(name, profile_to_file(p, info)).ok());
  }
  const RunResult r = run_command(
      "cd " + dir_ + " && " UPTIER_TOOL " profile merge --half-life 1 -o sum day10 day12");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(read("sum").profile.methods.begin()->second.counts[0], 1250u);
}

TEST_F(UpfTool, exports_are_read_by_their_tools) {
  run("objects", "p.upf");
  const auto with = [&](const std::string& format, const std::string& reader) {
    return run_command("cd " + dir_ + " && " UPTIER_TOOL " profile export p.upf --format=" +
                       format + " -o out." + format + " && " + reader);
  };
  RunResult r = with("json",
                     "python3 -c 'import json; d = json.load(open(\"out.json\")); "
                     "print(len(d[\"methods\"]))'");
  EXPECT_EQ(r.out, std::to_string(read("p.upf").profile.methods.size()) + "\n") << r.err;
  r = with("csv",
           "python3 -c 'import csv; rows = list(csv.DictReader(open(\"out.csv\", newline=\"\"))); "
           "print(sum(r[\"method\"] == \"move_all\" for r in rows) > 3, "
           "all(len(r) == 10 and None not in r.values() for r in rows))'");
  EXPECT_EQ(r.out, "True True\n") << r.err;
  r = with("tsv", "awk -F'\\t' 'NF != 14' out.tsv | wc -l");
  EXPECT_EQ(r.out, "0\n");
  r = with("folded", UPTIER_TOOL
           " profile export p.upf --format=folded --by=executions -o out.folded && grep -cE '^([^ "
           ";]+;)+block_[0-9]+ [0-9]+$' out.folded; wc -l < out.folded");
  const size_t half = r.out.size() / 2;
  EXPECT_EQ(r.out.substr(0, half), r.out.substr(half)) << r.out;
  r = with("text", UPTIER_TOOL " profile overlap p.upf out.text");
  EXPECT_NE(r.out.find("overlap 1.000000"), std::string::npos) << r.out << r.err;
  if (run_command("command -v llvm-profdata").code == 0) {
    r = with("llvm-text", "llvm-profdata show -topn=3 out.llvm-text");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find("Instrumentation level: IR"), std::string::npos) << r.out;
  } else {
    std::puts("SKIPPED: llvm-profdata is not installed, llvm-text was not read");
  }
  if (run_command("command -v genhtml").code == 0) {
    r = with("lcov", "genhtml -o html out.lcov");
    uint64_t blocks = 0, executed = 0;
    for (const auto& [key, m] : read("p.upf").profile.methods) {
      for (const Slot& slot : m.schema.slots) {
        if (slot.kind != SlotKind::kBlock) continue;
        ++blocks;
        executed += m.estimates[slot.word] != 0 ? 1 : 0;
      }
    }
    EXPECT_NE(
        r.out.find("(" + std::to_string(executed) + " of " + std::to_string(blocks) + " lines)"),
        std::string::npos)
        << r.out;
    EXPECT_EQ(r.code, 0) << r.err;
  } else {
    std::puts("SKIPPED: genhtml is not installed, lcov was not read");
  }
}

TEST_F(UpfTool, show_diff_top_and_check_speak) {
  // Without workers, code is compiled at once, so the result does not depend on a worker's speed.
  run("mix", "a.upf", "-O workers=0 --policy=always");
  run("objects", "b.upf");
  const auto tool = [&](const std::string& words) {
    return run_command("cd " + dir_ + " && " UPTIER_TOOL " profile " + words);
  };
  RunResult r = tool("show a.upf");
  for (const char* part : {"runs      1 ", "uptier 0.1.0", "% of executions in", "crc"}) {
    EXPECT_NE(r.out.find(part), std::string::npos) << part << r.out;
  }
  EXPECT_NE(tool("show --log a.upf").out.find(": "), std::string::npos);
  const nlohmann::json timeline =
      nlohmann::json::parse(tool("show --timeline --json a.upf").out, nullptr, false)["runs"][0];
  ASSERT_TRUE(timeline.is_object());
  uint64_t before = 0, optimized = 0;
  for (const auto& v : timeline["versions"]) {
    EXPECT_LE(before, v["from_ns"]);
    EXPECT_LE(v["from_ns"], timeline["length_ns"]);
    before = v["from_ns"];
    optimized += v["tier"] == "optimized" ? 1 : 0;
  }
  EXPECT_GT(optimized, 0u);
  EXPECT_NE(tool("show --timeline a.upf").out.find("optimized"), std::string::npos);
  EXPECT_NE(tool("show --method move_all b.upf").out.find("block 1 "), std::string::npos);
  EXPECT_EQ(tool("top -n 2 a.upf -o top.upf").code, 0);
  EXPECT_EQ(read("top.upf").profile.methods.size(), 2u);
  EXPECT_EQ(tool("diff a.upf a.upf -o none.upf").code, 0);
  EXPECT_NE(tool("diff a.upf b.upf").out.find("moved"), std::string::npos);
  EXPECT_EQ(tool("check a.upf b.upf").code, 0);
  std::string damaged = test::slurp(path("a.upf"));
  damaged[damaged.size() / 2] ^= 1;
  std::ofstream(path("bad.upf"), std::ios::binary) << damaged;
  r = tool("check bad.upf");
  EXPECT_EQ(r.code, 3);
  EXPECT_NE(r.err.find("bad.upf: offset "), std::string::npos) << r.err;
  std::ofstream(path("none.txt")) << "hello";
  r = tool("check none.txt");
  EXPECT_EQ(r.code, 3);
  EXPECT_NE(r.err.find("none.txt: "), std::string::npos) << r.err;
}

}  // namespace
}  // namespace uptier::upf_tool_test
