// Runs that are counted at the end of a profile file instead of being merged: what they append,
// when they are used, and how they cope with other processes that write, die or replace the file
// meanwhile.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "profile/upf/file.h"
#include "profile/upf/read.h"
#include "test_paths.h"
#include "tests/support/pick_program.h"
#include "tests/support/program_runs.h"
#include "tests/support/runtime_host.h"
#include "uptier/profile_file.h"

namespace uptier::test::upf_count_test {
namespace {

constexpr uint64_t kCalls = 20'000;
constexpr uint64_t kMostCounted = 7;

class CountRun : public testing::Test {
 protected:
  CountRun() {
    char name[] = "/tmp/uptier-count-XXXXXX";
    dir_ = mkdtemp(name);
    path_ = dir_ + "/p.upf";
    exact_run(95);
    first_ = slurp(path_);
  }
  ~CountRun() override { std::filesystem::remove_all(dir_); }

  Options warm() const {
    Options o = following();
    o.profile = path_;
    return o;
  }
  // Stays in baseline code, each call of which is counted.
  Options exact() const {
    Options o = warm();
    o.policy = PolicyMode::kNever;
    o.interval = 1;
    o.adaptive = false;
    return o;
  }
  // Calls `pick`, in `ones` of a hundred calls with 1.
  static void pick(IrRuntime& r, uint64_t ones, uint64_t calls = kCalls) {
    for (uint64_t i = 0; i < calls; ++i) {
      const uint64_t arg = i * 37 % 100 < ones ? 1 : 0;
      ASSERT_EQ(r.call("pick", {arg}).bits, arg == 1 ? 6u : 0u);
    }
  }
  static void save(IrRuntime& r) {
    const Status s = r.runtime->save_profile();
    ASSERT_TRUE(s.ok()) << s.error().message;
  }
  void one_run(const Options& o, uint64_t ones, uint64_t calls = kCalls) const {
    IrRuntime r(parse_or_die(kPick), o);
    ThreadScope scope(*r.runtime);
    pick(r, ones, calls);
    save(r);
  }
  void exact_run(uint64_t ones) const { one_run(exact(), ones); }
  void warm_run(uint64_t ones = 95) const { one_run(warm(), ones); }

  std::string bytes() const { return slurp(path_); }
  void put(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  static ProfileFile parse(const std::string& bytes) {
    Result<ProfileFile> f = profile_from_file(std::as_bytes(std::span(bytes)));
    EXPECT_TRUE(f.ok()) << f.error().message;
    return f.ok() ? std::move(*f) : ProfileFile{};
  }
  ProfileFile read() const { return parse(bytes()); }
  // Two runs may end in different seconds.
  static std::string text_without_times(ProfileFile f) {
    for (auto& [key, m] : f.profile.methods) m.time = 0;
    return to_text(f.profile);
  }
  static size_t segments(const std::string& bytes) {
    return profile::UpfReader(std::as_bytes(std::span(bytes))).segments().size();
  }
  // Returns the segment that a counted run appends.
  std::string counted_segment() const {
    const std::string before = bytes();
    warm_run();
    const std::string after = bytes();
    EXPECT_TRUE(after.starts_with(before));
    EXPECT_EQ(segments(after), segments(before) + 1);
    put(before);
    return after.substr(before.size());
  }

  std::string dir_, path_, first_;
};

TEST_F(CountRun, a_run_like_those_before_adds_a_segment_without_counts) {
  const ProfileFile before = read();
  warm_run();
  ASSERT_TRUE(bytes().starts_with(first_));
  EXPECT_EQ(segments(bytes()), 2u);
  const ProfileFile after = read();
  EXPECT_TRUE(after.warnings.empty() && !after.truncated);
  EXPECT_EQ(to_text(after.profile), to_text(before.profile));
  EXPECT_EQ(after.calls, before.calls);
  EXPECT_EQ(after.info.runs, 2u);
  EXPECT_EQ(after.info.weight, ProfileInfo::kRunWeight);
  EXPECT_EQ(after.info.uploads.size(), 2u);
}

TEST_F(CountRun, its_log_and_timeline_are_there) {
  warm_run();
  const std::string all = bytes();
  profile::UpfReader reader(std::as_bytes(std::span(all)));
  ASSERT_EQ(reader.segments().size(), 2u);
  const auto& last = reader.segments()[1];
  EXPECT_FALSE(reader.timeline(last).versions.empty());
  EXPECT_NE(reader.log(last).find("pick"), std::string::npos) << reader.log(last);
}

// Long enough for the drift to be noticed.
TEST_F(CountRun, a_run_that_is_unlike_is_summed) {
  one_run(warm(), 5, 20 * kCalls);
  EXPECT_EQ(segments(bytes()), 1u);
  EXPECT_EQ(read().info.runs, 2u);
  EXPECT_EQ(read().info.weight, ProfileInfo::kRunWeight * 3 / 2);
}

TEST_F(CountRun, who_collects_counts_gets_the_sum) {
  exact_run(95);
  EXPECT_EQ(segments(bytes()), 1u);
  EXPECT_EQ(read().profile.methods.begin()->second.calls, kCalls / 2 + kCalls);
  Options o = warm();
  o.profile_decay = 1;
  one_run(o, 95);
  EXPECT_EQ(segments(bytes()), 1u);
  EXPECT_EQ(read().info.weight, ProfileInfo::kRunWeight * 5 / 2);
}

// Every run is counted, and every eighth is merged.
TEST_F(CountRun, runs_are_summed_after_so_many_that_are_counted) {
  for (uint64_t n = 1; n <= 2 * (kMostCounted + 1); ++n) {
    const uint64_t weight = read().info.weight;
    warm_run();
    const bool summed = n % (kMostCounted + 1) == 0;
    EXPECT_EQ(segments(bytes()), summed ? 1 : 1 + n % (kMostCounted + 1)) << n;
    const ProfileFile f = read();
    EXPECT_EQ(f.info.runs, n + 1);
    EXPECT_EQ(f.info.uploads.size(), n + 1);
    EXPECT_EQ(f.info.weight, summed ? weight / 2 + ProfileInfo::kRunWeight : weight) << n;
    const double runs = static_cast<double>(f.info.weight) / ProfileInfo::kRunWeight;
    const double calls = static_cast<double>(f.profile.methods.begin()->second.calls);
    EXPECT_NEAR(calls / runs, kCalls, 2) << n;
  }
}

TEST_F(CountRun, a_counted_run_that_saves_again_is_summed_as_if_it_never_had_been_counted) {
  {
    IrRuntime r(parse_or_die(kPick), warm());
    ThreadScope scope(*r.runtime);
    pick(r, 95);
    save(r);
    EXPECT_EQ(segments(bytes()), 2u);
    save(r);
  }
  const ProfileFile twice = read();
  EXPECT_EQ(segments(bytes()), 1u);
  put(first_);
  {
    // The file is a different one by then, with the same contents, so the run must be merged.
    IrRuntime r(parse_or_die(kPick), warm());
    ThreadScope scope(*r.runtime);
    pick(r, 95);
    std::filesystem::rename(path_, path_ + "x");
    put(first_);
    save(r);
  }
  EXPECT_EQ(segments(bytes()), 1u);
  const ProfileFile once = read();
  EXPECT_EQ(text_without_times(twice), text_without_times(once));
  EXPECT_EQ(twice.calls, once.calls);
  EXPECT_EQ(twice.info.runs, once.info.runs);
  EXPECT_EQ(twice.info.weight, once.info.weight);
  EXPECT_EQ(twice.info.uploads.size(), once.info.uploads.size());
}

TEST_F(CountRun, two_that_end_together_are_both_there) {
  IrRuntime a(parse_or_die(kPick), warm()), b(parse_or_die(kPick), warm());
  for (IrRuntime* r : {&a, &b}) {
    ThreadScope scope(*r->runtime);
    pick(*r, 95);
  }
  save(a);
  EXPECT_EQ(read().info.runs, 2u);
  save(b);
  EXPECT_EQ(read().info.runs, 3u);
  EXPECT_EQ(read().info.uploads.size(), 3u);
  EXPECT_TRUE(read().warnings.empty());
}

TEST_F(CountRun, many_processes_at_once_are_all_there) {
  constexpr int kProcesses = 6, kRuns = 3;
  pid_t children[kProcesses];
  for (pid_t& child : children) {
    child = fork();
    if (child != 0) continue;
    for (int i = 0; i < kRuns; ++i) warm_run();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(read().info.runs, 1u + kProcesses * kRuns);
  EXPECT_TRUE(read().warnings.empty() && !read().truncated);
}

TEST_F(CountRun, a_file_that_is_replaced_meanwhile_gets_all_of_it) {
  Profile other;
  MethodProfile m;
  m.key = {77, 1};
  m.name = "other";
  m.schema = Schema::block_schema(1, 7);
  m.counts = {1000};
  m.weigh(1);
  other.methods.emplace(m.key, m);
  ProfileInfo info;
  info.runs = 1;
  info.weight = ProfileInfo::kRunWeight;
  info.uploads = {{5, 5}};
  IrRuntime r(parse_or_die(kPick), warm());
  ThreadScope scope(*r.runtime);
  pick(r, 95);
  ASSERT_TRUE(profile::replace_file(path_, profile_to_file(other, info)).ok());
  save(r);
  EXPECT_EQ(segments(bytes()), 1u);
  EXPECT_EQ(read().info.runs, 2u);
  EXPECT_EQ(read().profile.methods.size(), 2u);
}

TEST_F(CountRun, a_file_that_is_no_profile_any_more_is_left_alone) {
  IrRuntime r(parse_or_die(kPick), warm());
  ThreadScope scope(*r.runtime);
  pick(r, 95);
  const std::string text(first_.size(), 'x');
  put(text);
  EXPECT_FALSE(r.runtime->save_profile().ok());
  EXPECT_EQ(bytes(), text);
}

TEST_F(CountRun, concatenated_files_hold_a_counted_run_once) {
  warm_run();
  const ProfileFile one = read(), two = parse(bytes() + bytes());
  EXPECT_EQ(two.info, one.info);
  EXPECT_EQ(to_text(two.profile), to_text(one.profile));
}

// ---- Torn ends --------------------------------------------------------------------------------

TEST_F(CountRun, what_a_killed_one_has_left_is_skipped_and_the_file_made_whole) {
  const std::string segment = counted_segment();
  const std::string whole = bytes();
  for (size_t size = 1; size < segment.size(); size += 1 + size / 8) {
    put(whole + segment.substr(0, size));
    const ProfileFile torn = read();
    ASSERT_EQ(to_text(torn.profile), to_text(parse(whole).profile)) << size;
    ASSERT_TRUE(torn.truncated || !torn.warnings.empty()) << size;
    warm_run();
    EXPECT_EQ(segments(bytes()), 1u) << size;
    EXPECT_TRUE(read().warnings.empty() && !read().truncated) << size;
    // The torn segment may be complete up to its name.
    EXPECT_GE(read().info.runs, 2u) << size;
  }
}

TEST_F(CountRun, what_follows_a_torn_end_is_read) {
  const std::string segment = counted_segment(), other = counted_segment();
  for (size_t size = 1; size < segment.size(); size += 1 + size / 8) {
    const ProfileFile f = parse(first_ + segment.substr(0, size) + other);
    EXPECT_FALSE(f.warnings.empty()) << size;
    EXPECT_GE(f.info.runs, 2u) << size;
    EXPECT_EQ(to_text(f.profile), to_text(parse(first_).profile)) << size;
  }
}

// As a disk that loses power may leave the file.
TEST_F(CountRun, zeros_at_the_end_cost_nothing_but_themselves) {
  put(first_ + std::string(700, '\0'));
  warm_run();
  EXPECT_EQ(segments(bytes()), 1u);
  EXPECT_EQ(read().info.runs, 2u);
  EXPECT_TRUE(read().warnings.empty());
}

// As on a full disk.
TEST_F(CountRun, a_write_that_fails_is_said_and_costs_none_of_the_runs_before) {
  const size_t some = counted_segment().size() / 2;
  {
    IrRuntime r(parse_or_die(kPick), warm());
    ThreadScope scope(*r.runtime);
    pick(r, 95);
    struct rlimit before = {}, little = {};
    getrlimit(RLIMIT_FSIZE, &before);
    little = {first_.size() + some, before.rlim_max};
    const auto handler = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &little);
    const Status s = r.runtime->save_profile();
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    EXPECT_FALSE(s.ok());
  }
  EXPECT_EQ(bytes().size(), first_.size() + some);
  EXPECT_EQ(to_text(read().profile), to_text(parse(first_).profile));
  warm_run();
  EXPECT_EQ(segments(bytes()), 1u);
  EXPECT_TRUE(read().warnings.empty() && !read().truncated);
}

// A process that is about to write is waited for, and not taken for one that died.
TEST_F(CountRun, a_reader_waits_for_who_writes) {
  const std::string segment = counted_segment();
  const int fd = ::open(path_.c_str(), O_WRONLY | O_APPEND);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  const size_t half = segment.size() / 2;
  ASSERT_EQ(::write(fd, segment.data(), half), static_cast<ssize_t>(half));
  std::thread writer([&] {
    ::usleep(30'000);
    EXPECT_EQ(::write(fd, segment.data() + half, segment.size() - half),
              static_cast<ssize_t>(segment.size() - half));
    ::flock(fd, LOCK_UN);
  });
  {
    IrRuntime r(parse_or_die(kPick), warm());
    EXPECT_EQ(r.runtime->saved_report().problem, "");
    EXPECT_EQ(r.runtime->saved_report().runs, 2u);
    writer.join();
  }
  ::close(fd);
}

TEST_F(CountRun, killed_at_any_moment_all_that_have_ended_are_there) {
  std::mt19937 random(3);
  uint64_t most = 0;
  for (int i = 0; i < 40; ++i) {
    put(first_);
    const std::string done = dir_ + "/done";
    std::filesystem::remove(done);
    const pid_t child = fork();
    if (child == 0) {
      const int fd = ::open(done.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      for (;;) {
        one_run(warm(), 95, 2'000);
        if (::write(fd, "x", 1) != 1) _exit(1);
      }
    }
    ::usleep(20'000 + static_cast<useconds_t>(random() % 60'000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const uint64_t ended = slurp(done).size();
    most = std::max(most, ended);
    const ProfileFile f = read();
    EXPECT_GE(f.info.runs, 1 + ended);
    EXPECT_LE(f.info.runs, 2 + ended);
    EXPECT_EQ(f.profile.methods.size(), 1u);
  }
  EXPECT_GT(most, 0u);
}

// ---- Older files ------------------------------------------------------------------------------

TEST_F(CountRun, a_file_of_the_layout_before_is_written_anew_for_a_new_method) {
  const std::string old = slurp(UPTIER_SOURCE_DIR "/tests/golden/upf_groups_0.upf");
  ASSERT_FALSE(old.empty());
  put(old);
  const ProfileFile before = read();
  warm_run();  // its method is new in the file
  EXPECT_EQ(segments(bytes()), 1u);
  EXPECT_EQ(read().info.runs, before.info.runs + 1);
  EXPECT_EQ(read().profile.methods.size(), before.profile.methods.size() + 1);
}

}  // namespace
}  // namespace uptier::test::upf_count_test
