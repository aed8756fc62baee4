// A process that saves its profile more than once: the file is the same as after the last save
// alone.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "profile/upf/read.h"
#include "tests/support/program_runs.h"
#include "tests/support/runtime_host.h"
#include "uptier/profile_file.h"

namespace uptier::test::save_again_test {
namespace {

constexpr const char* kText = R"(
func @twice(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 2
  v2 = mul.i32 v0, v1
  branch v0, b1, b2
b1:
  return v2
b2:
  return v0
}
func @outer(i32) -> i32 {
b0(v0: i32):
  v1 = call @twice(v0)
  v2 = call @twice(v1)
  return v2
}
)";

class SaveAgain : public testing::Test {
 protected:
  SaveAgain() {
    char name[] = "/tmp/uptier-save-XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~SaveAgain() override { std::filesystem::remove_all(dir_); }

  // The counts of such a process depend on its calls only.
  Options options(const std::string& file) const {
    Options o;
    o.profile = dir_ + "/" + file;
    o.workers = 0;
    o.policy = PolicyMode::kNever;
    o.tier = TierMode::kInstrumented;
    return o;
  }
  static void run(IrRuntime& r, uint32_t times, uint32_t from = 0) {
    for (uint32_t i = from; i < from + times; ++i) ASSERT_EQ(r.call("outer", {i}).bits, 4 * i);
  }
  static void save(IrRuntime& r) {
    Status s = r.runtime->save_profile();
    ASSERT_TRUE(s) << s.error().message;
  }
  // A process that saves once and ends.
  void one_run(const std::string& file, uint32_t times) {
    IrRuntime r(parse_or_die(kText), options(file));
    ThreadScope scope(*r.runtime);
    run(r, times);
    save(r);
  }
  // A process that saves after each of these numbers of calls.
  void run_in_parts(const std::string& file, std::initializer_list<uint32_t> parts) {
    IrRuntime r(parse_or_die(kText), options(file));
    ThreadScope scope(*r.runtime);
    uint32_t from = 0;
    for (uint32_t times : parts) {
      run(r, times, from);
      save(r);
      from += times;
    }
  }
  ProfileFile read(const std::string& file) const {
    const std::string bytes = slurp(dir_ + "/" + file);
    Result<ProfileFile> f = profile_from_file(std::as_bytes(std::span(bytes)));
    EXPECT_TRUE(f.ok() && f->warnings.empty());
    return f.ok() ? std::move(*f) : ProfileFile{};
  }
  void expect_same(const std::string& one, const std::string& other) const {
    ProfileFile a = read(one), b = read(other);
    // Two runs may end in different seconds.
    for (ProfileFile* f : {&a, &b}) {
      for (auto& [key, m] : f->profile.methods) m.time = 0;
    }
    EXPECT_EQ(to_text(a.profile), to_text(b.profile));
    EXPECT_EQ(a.calls, b.calls);
    EXPECT_EQ(a.info.runs, b.info.runs);
    EXPECT_EQ(a.info.weight, b.info.weight);
    EXPECT_EQ(a.info.uploads.size(), b.info.uploads.size());
  }
  uint64_t calls_of(const std::string& file, std::string_view name) const {
    for (const auto& [key, m] : read(file).profile.methods) {
      if (m.name == name) return m.calls;
    }
    return 0;
  }

  std::string dir_;
};

TEST_F(SaveAgain, counts_a_run_once) {
  one_run("once.upf", 100);
  run_in_parts("parts.upf", {60, 40, 0});
  EXPECT_EQ(calls_of("once.upf", "outer"), 100u);
  expect_same("parts.upf", "once.upf");
}

TEST_F(SaveAgain, what_cannot_be_written_at_the_end_is_said) {
  const auto end_in = [&](const std::string& file) {
    auto r = std::make_unique<IrRuntime>(parse_or_die(kText), options(file));
    {
      ThreadScope scope(*r->runtime);
      run(*r, 3);
    }
    std::filesystem::remove_all(dir_ + "/gone");
    testing::internal::CaptureStderr();
    r.reset();
    return testing::internal::GetCapturedStderr();
  };
  std::filesystem::create_directory(dir_ + "/gone");
  EXPECT_EQ(end_in("gone/p.upf"), "uptier: the profile of this process is lost: " + dir_ +
                                      "/gone/p.upf: cannot lock the file: No such file or "
                                      "directory\n");
  EXPECT_EQ(end_in("p.upf"), "");
}

// As on a full disk: a partial file would read as an empty profile.
TEST_F(SaveAgain, a_first_save_that_fails_leaves_no_file) {
  IrRuntime r(parse_or_die(kText), options("p.upf"));
  ThreadScope scope(*r.runtime);
  run(r, 3);
  struct rlimit before = {}, none = {};
  getrlimit(RLIMIT_FSIZE, &before);
  none.rlim_max = before.rlim_max;
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &none);
  Status s = r.runtime->save_profile();
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_FALSE(s.ok());
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/p.upf"));
  save(r);
  EXPECT_EQ(calls_of("p.upf", "outer"), 3u);
}

// A method compiled from a saved profile is hardly observed; the run is assumed to be like the
// earlier ones. So the file's numbers per run stay the same, for trusted and for observed methods.
TEST_F(SaveAgain, what_is_taken_on_trust_neither_fades_nor_grows) {
  Options o = options("p.upf");
  o.policy = PolicyMode::kAuto;
  o.tier = TierMode::kAuto;
  constexpr uint32_t kCalls = 40'000;
  for (int n = 0; n < 8; ++n) {
    IrRuntime r(parse_or_die(kText), o);
    ThreadScope scope(*r.runtime);
    run(r, kCalls);
    if (n != 0) { EXPECT_GE(r.runtime->report().saved.compiled, 1u) << n; }
    save(r);
    ProfileFile f = read("p.upf");
    double runs = static_cast<double>(f.info.weight) / ProfileInfo::kRunWeight;
    EXPECT_NEAR(static_cast<double>(calls_of("p.upf", "outer")) / runs, kCalls, kCalls / 100) << n;
  }
}

TEST_F(SaveAgain, lets_earlier_runs_fade_once) {
  for (const char* file : {"once.upf", "parts.upf"}) one_run(file, 80);
  one_run("once.upf", 30);
  run_in_parts("parts.upf", {10, 10, 10});
  EXPECT_EQ(calls_of("once.upf", "outer"), 80u / 2 + 30u);
  expect_same("parts.upf", "once.upf");
}

TEST_F(SaveAgain, adds_what_came_on_to_what_another_process_wrote_in_between) {
  IrRuntime r(parse_or_die(kText), options("p.upf"));
  ThreadScope scope(*r.runtime);
  run(r, 40);
  save(r);
  one_run("p.upf", 100);  // this run has halved the 40
  run(r, 7);
  save(r);
  EXPECT_EQ(calls_of("p.upf", "outer"), 40u / 2 + 100u + 7u);
  EXPECT_EQ(read("p.upf").info.runs, 2u);
}

TEST_F(SaveAgain, writes_all_of_it_where_the_file_has_gone) {
  IrRuntime r(parse_or_die(kText), options("p.upf"));
  ThreadScope scope(*r.runtime);
  run(r, 40);
  save(r);
  std::filesystem::remove(dir_ + "/p.upf");
  run(r, 7);
  save(r);
  EXPECT_EQ(calls_of("p.upf", "outer"), 47u);
  EXPECT_EQ(read("p.upf").info.runs, 1u);
}

TEST_F(SaveAgain, leaves_one_timeline_a_run) {
  one_run("p.upf", 20);
  run_in_parts("p.upf", {10, 10, 10});
  const std::string bytes = slurp(dir_ + "/p.upf");
  profile::UpfReader reader(std::as_bytes(std::span(bytes)));
  ASSERT_EQ(reader.segments().size(), 1u);
  EXPECT_EQ(reader.runs(reader.segments()[0]).size(), 2u);
}

// Even if the last save was long ago: a host that has saved once is responsible for saving.
TEST_F(SaveAgain, is_up_to_the_host_once_it_has_begun) {
  {
    IrRuntime r(parse_or_die(kText), options("p.upf"));
    ThreadScope scope(*r.runtime);
    run(r, 40);
    save(r);
    run(r, 7);
  }
  EXPECT_EQ(calls_of("p.upf", "outer"), 40u);
}

}  // namespace
}  // namespace uptier::test::save_again_test
