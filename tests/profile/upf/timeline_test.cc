// Timelines: they round-trip, cut or damaged ones are refused, and a run's timeline matches its
// activities.
#include "profile/upf/timeline.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "profile/upf/format.h"
#include "profile/upf/read.h"
#include "profile/upf/write.h"
#include "tests/support/program_runs.h"
#include "tests/support/trace_samples.h"

namespace uptier::profile::timeline_test {
namespace {

Timeline sample() {
  Timeline t;
  t.length_ns = 5'000'000;
  t.left_out = 3;
  t.figures = {{"compile_ns_total", 1e6}, {"overhead_share", 0.0125}};
  t.methods = {{{0xa1, 7}, "fib", 2}, {{0xa1, 8}, "", 0}};
  t.loops = {{0, 1, 0, 44}, {0, 2, 1, 0}};
  t.versions = {{0, Tier::kBaseline, Copy::kPlain, 0, 10, 90, 512, 1000, 0},
                {0, Tier::kBaseline, Copy::kInstrumented, 0, 20, 90, 700, 1200, 0},
                {1, Tier::kOptimized, Copy::kPlain, 3, 90, 0, 256, 90000, 2}};
  t.decisions = {{15, 0, 32, 1, 0, "keep", "2 us so far, worth it from 80 us"},
                 {80, 1, 64, 9, 4096, "specialize", "worth it"}};
  return t;
}

std::string rule_of(const Bytes& bytes) {
  Result<Timeline> read = read_timeline(bytes);
  return read.ok() ? "" : read.error().message;
}

TEST(Timeline, what_is_written_comes_back) {
  Result<Timeline> back = read_timeline(timeline_bytes(sample()));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, sample());
  EXPECT_EQ(*read_timeline(timeline_bytes({})), Timeline{});
}

TEST(Timeline, comes_back_from_a_file_and_changes_nothing_else_in_it) {
  test::Generator generator(9);
  const Profile profile = generator.profile();
  const Bytes file = profile_to_file(profile, {}, "log", sample());
  UpfReader reader(file);
  ASSERT_EQ(reader.segments().size(), 1u);
  EXPECT_EQ(reader.timeline(reader.segments()[0]), sample());
  EXPECT_EQ(reader.log(reader.segments()[0]), "log");
  EXPECT_EQ(reader.skipped(), 0u) << reader.warnings().front();
  Result<ProfileFile> read = profile_from_file(file);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->profile, profile);
  EXPECT_TRUE(read->warnings.empty());
  // A file without a timeline has an empty one.
  const Bytes without = uptier::profile_to_file(profile, {});
  UpfReader plain(without);
  EXPECT_TRUE(plain.timeline(plain.segments()[0]).empty());
}

TEST(Timeline, cut_anywhere_is_refused) {
  const Bytes whole = timeline_bytes(sample());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(rule_of(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size))), "")
        << size;
  }
  Bytes more = whole;
  more.resize(more.size() + 8);
  EXPECT_EQ(rule_of(more), "timeline: bytes are left over");
}

TEST(Timeline, names_the_rule_that_is_broken) {
  const auto with = [](const auto& change) {
    Timeline t = sample();
    change(t);
    return rule_of(timeline_bytes(t));
  };
  const std::string method = "timeline: a method that is not in its list";
  EXPECT_EQ(with([](Timeline& t) { t.versions[1].method = 2; }), method);
  EXPECT_EQ(with([](Timeline& t) { t.loops[0].method = 2; }), method);
  EXPECT_EQ(with([](Timeline& t) { t.decisions[0].method = UINT32_MAX; }), method);
  const std::string tier = "timeline: an unknown tier or copy";
  EXPECT_EQ(with([](Timeline& t) { t.versions[0].tier = static_cast<Tier>(3); }), tier);
  EXPECT_EQ(with([](Timeline& t) { t.versions[0].copy = static_cast<Copy>(2); }), tier);
  Bytes greedy = timeline_bytes(sample());
  for (size_t list = 0; list < 5; ++list) {
    Bytes claims = greedy;
    store<uint64_t>(claims, 16 + 8 * list, UINT64_MAX / 64);
    EXPECT_EQ(rule_of(claims), "timeline: a list does not fit") << list;
  }
}

TEST(Timeline, what_has_no_room_is_counted_and_what_only_kept_goes_first) {
  Timeline t = sample();
  t.decisions.assign(60'000, {1, 0, 2, 3, 4, "keep", std::string(100, 'r')});
  t.decisions[59'000].verb = "specialize";
  fit(t);
  ASSERT_EQ(t.decisions.size(), 1u);
  EXPECT_EQ(t.decisions[0].verb, "specialize");
  EXPECT_EQ(t.left_out, 3u + 59'999);
  t.decisions.assign(60'000, {1, 0, 2, 3, 4, "drop", std::string(100, 'r')});
  fit(t);
  EXPECT_GT(t.decisions.size(), 20'000u);
  EXPECT_EQ(t.left_out, 3u + 59'999 + 60'000 - t.decisions.size());
  Timeline small = sample();
  fit(small);
  EXPECT_EQ(small, sample());
}

// The timelines of earlier runs are copied from file to file, and the oldest is dropped when there
// is no room.
TEST(Timeline, files_keep_the_last_runs) {
  Bytes file;
  for (uint64_t n = 1; n <= 20; ++n) {
    const Bytes before = std::move(file);
    const UpfReader old(before);
    std::vector<RunRecord> past;
    if (!old.segments().empty()) past = latest_runs(old.runs(old.segments()[0]));
    ProfileInfo info;
    info.time = 100 + n;
    Timeline t = sample();
    t.length_ns = n;
    if (n == 18) t = {};
    const std::string log = n == 19 ? "" : "log " + std::to_string(n);
    file = profile_to_file({}, info, log, t, nullptr, nullptr, past);
    UpfReader reader(file);
    ASSERT_EQ(reader.segments().size(), 1u);
    const std::vector<RunRecord> runs = reader.runs(reader.segments()[0]);
    ASSERT_EQ(runs.size(), std::min<size_t>(n, kPastRuns + 1));
    for (size_t i = 0; i < runs.size(); ++i) {
      const uint64_t run = n - runs.size() + i + 1;
      EXPECT_EQ(runs[i].time, 100 + run);
      EXPECT_EQ(reader.log(runs[i]), run == 19 ? "" : "log " + std::to_string(run));
      EXPECT_EQ(reader.timeline(runs[i]).length_ns, run == 18 ? 0 : run);
    }
    ASSERT_EQ(reader.skipped(), 0u) << reader.warnings().front();
    Result<ProfileFile> whole = profile_from_file(file);
    ASSERT_TRUE(whole.ok() && whole->warnings.empty());
  }
}

TEST(Timeline, past_runs_have_room_for_the_latest) {
  const Bytes large(kPastBytes / 2 - 8), huge(kPastBytes + 1);
  const auto times = [](const std::vector<RunRecord>& runs) {
    std::vector<uint64_t> all;
    for (const RunRecord& run : latest_runs(runs)) all.push_back(run.time);
    return all;
  };
  using Times = std::vector<uint64_t>;
  EXPECT_EQ(times({{3, large, {}}, {1, large, {}}, {2, {}, large}}), (Times{2, 3}));
  EXPECT_EQ(times({{1, {}, {}}, {2, huge, {}}, {3, {}, {}}}), (Times{3}));
  EXPECT_EQ(times({}), Times{});
}

// Returns the timeline that a run of an example leaves.
Timeline timeline_of_run(const std::string& program, const std::string& options) {
  char dir[] = "/tmp/uptier-timeline-XXXXXX";
  const std::string path = std::string(mkdtemp(dir)) + "/p.upf";
  const test::RunResult r =
      test::run_tool("run --profile " + path + " " + options + " " + test::wasm_path(program));
  EXPECT_EQ(r.out, test::expected_output(program)) << r.err;
  const std::string text = test::slurp(path);
  std::filesystem::remove_all(dir);
  UpfReader reader(std::as_bytes(std::span(text)));
  EXPECT_EQ(reader.segments().size(), 1u);
  return reader.segments().empty() ? Timeline{} : reader.timeline(reader.segments()[0]);
}

// Three runs, and the tool's output for each.
TEST(Timeline, of_each_of_the_last_runs_is_shown) {
  char dir[] = "/tmp/uptier-timelines-XXXXXX";
  const std::string path = std::string(mkdtemp(dir)) + "/p.upf";
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(test::run_tool("run --profile " + path + " " + test::wasm_path("objects")).code, 0);
  }
  const test::RunResult r = test::run_tool("profile show --timeline " + path);
  for (const char* part : {"run 1 of 3, ended 2", "\n\nrun 2 of 3, ended", "run 3 of 3"}) {
    EXPECT_NE(r.out.find(part), std::string::npos) << part << r.out.substr(0, 400);
  }
  const test::RunResult log = test::run_tool("profile show --log " + path);
  // The first run had no profile, so it decided later than the others.
  const size_t second = log.out.find("# run 2 of 3");
  ASSERT_NE(second, std::string::npos) << log.out;
  const std::string cold = log.out.substr(0, second), warm = log.out.substr(second);
  EXPECT_EQ(cold.find("saved"), std::string::npos);
  EXPECT_NE(warm.find("saved"), std::string::npos);
  const test::RunResult none = test::run_tool("profile show --log " + test::wasm_path("objects"));
  EXPECT_EQ(none.code, 3) << none.err;
  std::filesystem::remove_all(dir);
}

TEST(Timeline, of_a_run_is_in_order_and_whole) {
  const Timeline t = timeline_of_run("objects", "-O loops=on -O measure_rates=off");
  ASSERT_FALSE(t.empty());
  std::set<uint32_t> optimized;
  for (const auto& v : t.versions) {
    EXPECT_LE(v.from_ns, t.length_ns);
    EXPECT_TRUE(v.to_ns == 0 || v.to_ns > v.from_ns);
    EXPECT_LE(v.to_ns, t.length_ns);
    if (v.tier == Tier::kOptimized) optimized.insert(v.method);
  }
  EXPECT_GE(optimized.size(), 3u);
  uint64_t last = 0;
  std::set<uint32_t> decided;
  for (const auto& d : t.decisions) {
    EXPECT_GE(d.at_ns, last);
    last = d.at_ns;
    if (d.verb == "specialize" || d.verb == "recompile") decided.insert(d.method);
  }
  EXPECT_LE(last, t.length_ns);
  // There is a decision for every optimized method.
  for (uint32_t m : optimized) EXPECT_TRUE(decided.contains(m)) << t.methods[m].name;
  EXPECT_FALSE(t.loops.empty());
  EXPECT_EQ(t.left_out, 0u);
}

TEST(Timeline, of_a_run_nests_its_loops) {
  const Timeline t = timeline_of_run("mix", "-O loops=on");
  size_t nested = 0;
  for (const auto& l : t.loops) {
    if (l.parent == 0) continue;
    ++nested;
    const bool there = std::ranges::any_of(
        t.loops, [&l](const auto& o) { return o.method == l.method && o.site == l.parent; });
    EXPECT_TRUE(there);
  }
  EXPECT_GT(nested, 0u);
}

}  // namespace
}  // namespace uptier::profile::timeline_test
