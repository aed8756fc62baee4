// Interference with a profile's file while it is in use: locks, links, size limits, and
// half-written files.
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "profile/base/new_file.h"
#include "profile/base/write_all.h"
#include "tests/support/tool_dir.h"
#include "tests/support/trace_samples.h"
#include "tiering/saved/file_lock.h"
#include "tiering/saved/profile_store.h"
#include "uptier/trace.h"

namespace uptier::upf_files_test {
namespace {

using tiering::FileLock;
using tiering::ProfileStore;

class UpfFiles : public test::ToolDir {
 protected:
  bool is_there(const std::string& name) const { return std::filesystem::exists(path(name)); }
  static tiering::SeenRun one_run() {
    tiering::SeenRun seen;
    seen.info.runs = 1;
    seen.info.weight = ProfileInfo::kRunWeight;
    return seen;
  }
  static Status save(ProfileStore& store) { return store.save(one_run(), 1, profile::Sync::kNo); }
};

// Acts as another process that holds the file's lock; flock works per descriptor, so the same
// process can do it.
class Holder {
 public:
  explicit Holder(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY)) {
    EXPECT_EQ(::flock(fd_, LOCK_EX | LOCK_NB), 0);
  }
  ~Holder() { ::close(fd_); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

 private:
  int fd_;
};

TEST_F(UpfFiles, waiting_for_a_lock_has_an_end) {
  write("p.upf", {});
  {
    const Holder holder(path("p.upf"));
    const FileLock lock(path("p.upf"), 20);
    ASSERT_FALSE(lock.status().ok());
    EXPECT_NE(lock.status().error().message.find("profile_lock_ms"), std::string::npos);
    ProfileStore store(path("p.upf"), 20);
    EXPECT_FALSE(save(store).ok());
    tiering::wait_for_writers(path("p.upf"), 20);
  }
  EXPECT_TRUE(FileLock(path("p.upf"), 0).status().ok()) << "nobody has it";
}

TEST_F(UpfFiles, a_run_whose_profile_is_held_ends_and_says_so) {
  write("p.upf", {});
  const Holder holder(path("p.upf"));
  const test::RunResult r =
      tool("run --profile p.upf -O profile_lock_ms=50 " + test::wasm_path("nbody"));
  EXPECT_EQ(r.out, test::expected_output("nbody"));
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("another process has held it for 50 ms"), std::string::npos) << r.err;
}

TEST_F(UpfFiles, a_link_stands_for_the_file_that_it_leads_to) {
  run("nbody", "v1.upf");
  const uint64_t runs = read("v1.upf").info.runs;
  std::filesystem::create_symlink("v1.upf", path("current.upf"));
  run("nbody", "current.upf");
  EXPECT_TRUE(std::filesystem::is_symlink(path("current.upf")));
  EXPECT_EQ(read("v1.upf").info.runs, runs + 1);
  std::filesystem::create_symlink("nowhere.upf", path("lost.upf"));
  const test::RunResult lost = tool("run --profile lost.upf " + test::wasm_path("nbody"));
  EXPECT_EQ(lost.code, 1);
  EXPECT_NE(lost.err.find("symbolic link"), std::string::npos) << lost.err;
}

TEST_F(UpfFiles, what_killed_writers_have_left_is_removed) {
  for (const char* name : {"p.upf.tmp0", "p.upf.tmp1", "p.upf.tmp7"}) write_text(name, "half");
  write_text("p.upf.tmp2", "busy");
  {
    const Holder writer(path("p.upf.tmp2"));
    write("p.upf", {});
    EXPECT_TRUE(is_there("p.upf.tmp2")) << "somebody writes to it";
  }
  for (const char* name : {"p.upf.tmp0", "p.upf.tmp1", "p.upf.tmp7"}) {
    EXPECT_FALSE(is_there(name)) << name;
  }
  write("p.upf", {});
  EXPECT_FALSE(is_there("p.upf.tmp2"));
  EXPECT_TRUE(is_there("p.upf"));
}

TEST_F(UpfFiles, a_new_file_is_nobodys_leftover_until_it_has_its_name) {
  Result<profile::NewFile> first = profile::NewFile::create(path("p.upf"));
  ASSERT_TRUE(first.ok());
  Result<profile::NewFile> second = profile::NewFile::create(path("p.upf"));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(first->close(), 0);
  write("p.upf", {});  // looks for leftovers
  EXPECT_EQ(first->replace(), 0) << "it was closed, and not removed";
  EXPECT_EQ(second->close(), 0);
  EXPECT_EQ(second->replace(), 0);
}

// Runs `what` in a child with a limit on file sizes; returns its exit status.
template <typename What>
int limited(uint64_t bytes, const What& what) {
  const pid_t child = ::fork();
  if (child == 0) {
    const struct rlimit limit = {bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, SIG_DFL);
    ::_exit(what() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_F(UpfFiles, a_limit_of_file_sizes_is_an_error_and_kills_nobody) {
  const std::string file = path("p.upf"), trace = path("t");
  const int replaced = limited(16, [&] {
    const Status s = profile::replace_file(file, profile::Bytes(100));
    return !s.ok() && s.error().message.find("File too large") != std::string::npos;
  });
  EXPECT_TRUE(WIFEXITED(replaced)) << "signal " << WTERMSIG(replaced);
  EXPECT_EQ(WEXITSTATUS(replaced), 0);
  EXPECT_FALSE(is_there("p.upf"));
  const int traced = limited(256, [&] {
    Result<std::unique_ptr<TraceSink>> sink = trace_file_sink(trace);
    bool lost = false;
    for (const TraceEvent& e : test::sample_events()) lost = lost || !(*sink)->on_event(e).ok();
    return lost && !(*sink)->finish(0).ok();
  });
  EXPECT_TRUE(WIFEXITED(traced)) << "signal " << WTERMSIG(traced);
  EXPECT_EQ(WEXITSTATUS(traced), 0);
}

TEST_F(UpfFiles, a_trace_or_profile_that_cannot_be_written_is_exit_code_1) {
  const std::string nbody = test::wasm_path("nbody");
  // Through a pipe; otherwise the limit would apply to the output as well.
  const auto run = [&](const std::string& limit, const std::string& words) {
    return in_dir("{ ulimit -f " + limit + "; " UPTIER_TOOL " run " + words + " " + nbody +
                  " 2>&1; echo exit $?; } | cat")
        .out;
  };
  const std::string traced = run("1", "--trace t --report");
  EXPECT_TRUE(traced.starts_with(test::expected_output("nbody"))) << traced;
  EXPECT_NE(traced.find("t: the trace is incomplete, "), std::string::npos) << traced;
  EXPECT_NE(traced.find("trace events lost"), std::string::npos) << "the loss is counted";
  EXPECT_TRUE(traced.ends_with("exit 1\n")) << traced;
  EXPECT_EQ(tool("trace dump t").code, 3) << "what is there can be read";
  const std::string kept = run("0", "--profile p.upf");
  EXPECT_NE(kept.find("p.upf: cannot write the file: File too large"), std::string::npos) << kept;
  EXPECT_TRUE(kept.ends_with("exit 1\n")) << kept;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 1) << "nothing is left";
  const test::RunResult nowhere = tool("run --profile /nonexistent/p.upf " + nbody);
  EXPECT_EQ(nowhere.out, test::expected_output("nbody"));
  EXPECT_EQ(nowhere.code, 1);
}

// Writes pages to a file until that fails, and exits with the errno.
constexpr const char* kWriter = R"((module
  (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "big")
  (func (export "_start") (local $errno i32) (local $left i32)
    (local.set $errno (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 3)
      (i32.const 1) (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 16)))
    (if (local.get $errno) (then (call $exit (i32.const 100))))
    (i32.store (i32.const 32) (i32.const 65536))
    (i32.store (i32.const 36) (i32.const 4096))
    (local.set $left (i32.const 100))
    (loop $again
      (local.set $errno (call $write (i32.load (i32.const 16)) (i32.const 32) (i32.const 1) (i32.const 24)))
      (if (local.get $errno) (then (call $exit (local.get $errno))))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $again (local.get $left)))))
)";

TEST_F(UpfFiles, a_guests_write_past_the_limit_is_an_error_of_its_own) {
  write_text("w.wat", kWriter);
  ASSERT_EQ(in_dir("wat2wasm w.wat -o w.wasm; mkdir d").code, 0);
  EXPECT_EQ(tool("run --dir d::/ w.wasm").code, 0) << "without a limit";
  const test::RunResult r = in_dir("ulimit -f 16; exec " UPTIER_TOOL " run --dir d::/ w.wasm");
  EXPECT_EQ(r.signal, 0);
  EXPECT_EQ(r.code, 22) << "EFBIG is 22 in WASI";
}

}  // namespace
}  // namespace uptier::upf_files_test
