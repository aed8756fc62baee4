// Writers that are killed at any moment: every file is readable and contains everything that was
// handed over.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <random>

#include "profile/trace/trace_file.h"
#include "profile/upf/file.h"
#include "test_paths.h"
#include "tests/support/program_runs.h"
#include "tests/support/trace_samples.h"
#include "uptier/profile_file.h"

namespace uptier::upf_kill_test {
namespace {

constexpr int kKills = 200;

class UpfKill : public testing::Test {
 protected:
  UpfKill() {
    char name[] = "/tmp/uptier-kill-XXXXXX";
    dir_ = mkdtemp(name);
    void* shared = mmap(nullptr, sizeof(std::atomic<uint64_t>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    done_ = new (shared) std::atomic<uint64_t>(0);
  }
  ~UpfKill() override { std::filesystem::remove_all(dir_); }

  // Runs `write` in a child process, which counts in done_ the items it has handed over, and kills
  // it `delay` microseconds after it has begun. Returns the number handed over by then.
  uint64_t killed(const std::function<void()>& write, uint32_t delay) {
    done_->store(0);
    const pid_t child = fork();
    if (child == 0) {
      write();
      _exit(0);
    }
    int status = 0;
    bool ended = false;
    while (!ended && done_->load() == 0) {
      usleep(50);
      ended = waitpid(child, &status, WNOHANG) != 0;
    }
    if (!ended) {
      usleep(delay);
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
    }
    EXPECT_TRUE(WIFSIGNALED(status)) << "it was not writing any more";
    return done_->load();
  }

  std::string dir_;
  std::atomic<uint64_t>* done_;  // shared with the child process
};

// Returns profile number n: its counts contain n, and it is large enough for several writes.
std::vector<std::byte> numbered(uint64_t n) {
  Profile profile;
  for (uint32_t f = 0; f < 40; ++f) {
    MethodProfile m;
    m.key = {7, f};
    m.name = "f" + std::to_string(f);
    m.schema = Schema::block_schema(100, f + 1);
    m.counts.assign(100, n);
    m.weigh(1);
    profile.methods.emplace(m.key, m);
  }
  return profile_to_file(profile, {});
}

TEST_F(UpfKill, file_that_is_replaced_is_a_whole_one_and_no_older_than_the_last_replaced) {
  const std::string path = dir_ + "/p.upf";
  std::mt19937 random(1);
  uint64_t most = 0;
  for (int i = 0; i < kKills; ++i) {
    const uint64_t done = killed(
        [&] {
          for (uint64_t n = 1;; ++n) {
            if (!profile::replace_file(path, numbered(n)).ok()) _exit(1);
            done_->store(n);
          }
        },
        static_cast<uint32_t>(random() % (most > 1 ? 3000 : 3000 + 1000 * i)));
    const std::string bytes = test::slurp(path);
    const Result<ProfileFile> file = profile_from_file(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(file.ok()) << file.error().message;
    ASSERT_TRUE(file->warnings.empty() && !file->truncated);
    ASSERT_EQ(file->profile.methods.size(), 40u);
    const uint64_t n = file->profile.methods.begin()->second.counts[0];
    ASSERT_GE(n, done);
    ASSERT_LE(n, done + 1);
    most = std::max(most, n);
  }
  EXPECT_GT(most, 1u);
}

TEST_F(UpfKill, trace_has_every_flush_that_was_handed_over) {
  const std::string path = dir_ + "/t.trace";
  std::mt19937 random(2);
  const std::vector<TraceEvent> events = test::sample_events();
  size_t between = 0;  // number of events before the first data of sample_events
  for (int i = 0; i < kKills; ++i) {
    const uint64_t done = killed(
        [&] {
          auto sink = trace_file_sink(path);
          if (!sink.ok()) _exit(1);
          uint64_t flushed = 0;
          for (;;) {
            for (const TraceEvent& event : events) {
              if (!(*sink)->on_event(event).ok()) _exit(2);
              if (std::holds_alternative<InstrumentationData>(event)) done_->store(++flushed);
            }
          }
        },
        static_cast<uint32_t>(random() % 3000));
    const std::string bytes = test::slurp(path);
    profile::TraceReader reader(std::as_bytes(std::span(bytes)));
    uint64_t flushed = 0;
    while (reader.next()) {
      flushed += std::holds_alternative<InstrumentationData>(reader.event()) ? 1 : 0;
    }
    ASSERT_NE(reader.state(), profile::TraceReader::State::kCorrupt) << reader.error().message;
    ASSERT_GE(flushed, done);
    ASSERT_LE(flushed, done + 1);
    between += reader.state() == profile::TraceReader::State::kTruncated ? 1 : 0;
    ASSERT_TRUE(profile_from_trace(std::as_bytes(std::span(bytes))).ok());
  }
  EXPECT_EQ(between, static_cast<size_t>(kKills));  // none of them has an end marker
}

// Kills the tool itself, with everything that it has in flight.
TEST_F(UpfKill, trace_of_a_killed_run_is_a_profile) {
  int killed = 0;
  // From 4 ms on; on a busy machine a run may take longer to begin its trace.
  for (int i = 0; i < 10 || (killed < 3 && i < 100); ++i) {
    const std::string path = dir_ + "/run.trace";
    std::filesystem::remove(path);
    const test::RunResult r = test::run_command(
        "timeout -s KILL " + std::to_string((4 + 3 * (i % 10) * (1 + i / 10)) / 1000.0) +
        " " UPTIER_TOOL " run --trace " + path + " " + test::wasm_path("mix") + " >/dev/null");
    if (r.code == 0 || !std::filesystem::exists(path)) continue;
    ++killed;
    const std::string bytes = test::slurp(path);
    const Result<TraceProfile> trace = profile_from_trace(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(trace.ok()) << trace.error().message;
  }
  EXPECT_GE(killed, 3);
}

}  // namespace
}  // namespace uptier::upf_kill_test
