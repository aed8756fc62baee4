// Children of fork(): they do not touch the runtimes of their parent, without help from the host.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "profile/trace/validate.h"
#include "tests/support/coroutine.h"
#include "tests/support/workshop.h"
#include "uptier/trace.h"
#include "uptier/uptier.h"

// LeakSanitizer calls this when a process exits: in a forked child, memory that other threads held
// is never freed.
static bool g_forked = false;
extern "C" int __lsan_is_turned_off() { return g_forked; }

namespace uptier::test::fork_test {
namespace {

// Returns the child's exit code, which is the result of `child`. A child that hangs is killed, and
// the result is -1.
template <typename F>
int code_of_child(F child) {
  fflush(stdout);
  fflush(stderr);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(120);
    _exit(child());
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The child only exits: static and thread_local objects are destroyed.
int code_of_child_that_exits() {
  fflush(stdout);
  fflush(stderr);
  pid_t pid = fork();
  if (pid == 0) {
    g_forked = true;
    alarm(120);
    exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct TempDir {
  TempDir() {
    char name[] = "/tmp/uptier-fork-XXXXXX";
    path = mkdtemp(name);
  }
  ~TempDir() { std::filesystem::remove_all(path); }
  std::string path;
};

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

// A trace that is written all the time, a worker that compiles, and a thread that holds locks.
struct Busy {
  explicit Busy(TraceSink* sink)
      : w(options({{"policy", "always"}, {"flush_first", "4"}, {"interval", "1"}}), sink) {
    for (uint64_t k = 0; k < 20; ++k) methods.push_back(w.at_least(k));
    other = std::thread([this] {
      ThreadScope scope(*w.runtime);
      for (uint64_t n = 0; !stop; ++n) {
        w.call(methods[n % methods.size()], {n});
        w.runtime->report();
      }
    });
  }
  ~Busy() { finish(); }
  void finish() {
    stop = true;
    if (other.joinable()) other.join();
  }
  Workshop w;
  std::vector<MethodId> methods;
  std::atomic<bool> stop{false};
  std::thread other;
};

TEST(Fork, a_child_that_only_exits_leaves_the_parents_trace_whole) {
  TempDir dir;
  const std::string file = dir.path + "/trace";
  {
    Result<std::unique_ptr<TraceSink>> sink = trace_file_sink(file);
    ASSERT_TRUE(sink.ok());
    Busy busy(sink->get());
    ThreadScope scope(*busy.w.runtime);
    for (uint64_t k = 0; k < 200; ++k) {
      for (uint64_t n = 0; n < 50; ++n) busy.w.call(busy.methods[n % 20], {n});
      ASSERT_EQ(code_of_child_that_exits(), 0) << k;
    }
    busy.finish();
  }  // ends the trace
  const std::string bytes = contents(file);
  Result<profile::TraceSummary> summary = profile::validate(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(summary.ok()) << summary.error().message;
}

TEST(Fork, a_child_may_destroy_what_it_has_and_nothing_is_written) {
  TempDir dir;
  const std::string file = dir.path + "/trace", profile = dir.path + "/profile.upf";
  Result<std::unique_ptr<TraceSink>> sink = trace_file_sink(file);
  ASSERT_TRUE(sink.ok());
  Workshop w(options({{"interval", "1"}, {"profile", profile.c_str()}}), sink->get());
  MethodId m = w.at_least(3);
  ThreadScope scope(*w.runtime);
  for (uint64_t n = 0; n < 100; ++n) w.call(m, {n});
  w.runtime->flush();  // the worker has no work from here on
  const std::string before = contents(file);
  EXPECT_EQ(code_of_child([&] {
              w.runtime->detach();
              w.runtime.reset();
              return std::filesystem::exists(profile) ? 1 : 0;
            }),
            0);
  EXPECT_EQ(contents(file), before);
  EXPECT_EQ(w.call(m, {7}).bits, 7u);
}

// Returns a bit for each call that gives a wrong answer.
int what_answers_otherwise(Workshop& w, MethodId m, NativeStack* stack) {
  Runtime& r = *w.runtime;
  auto forked = [](const Error& e) { return e.code == ErrorCode::kForked; };
  auto refused = [&](const Status& s) { return !s.ok() && forked(s.error()); };
  StackMemory memory(1u << 20);
  r.flush();
  r.quiescent();
  r.begin_blocked();
  r.end_blocked();
  r.remove_methods({&m, 1});
  int wrong = 0, bit = 1;
  auto expect = [&](bool right) {
    if (!right) wrong |= bit;
    bit <<= 1;
  };
  Outcome o = w.call(m, {1});
  expect(refused(r.attach()));
  expect(!o.ok() && o.trap.code == TrapCode::kNoThread);
  expect(refused(r.set("interval", "4")) && refused(r.observe(Sampling::kOff)));
  Result<MethodId> added = w.try_add("late", kOne, [](FunctionBuilder& b) { b.ret(b.param(0)); });
  expect(!added.ok() && forked(added.error()));
  Result<std::string> ir = r.ir(m);
  expect(!ir.ok() && forked(ir.error()) && refused(r.save_profile()));
  Result<NativeStack*> made = r.create_stack(memory.low(), memory.bytes());
  expect(!made.ok() && forked(made.error()) && refused(r.switch_stack(stack)) &&
         refused(r.destroy_stack(stack)));
  expect(r.report().methods.empty() && r.profile().methods.empty() && r.loops().empty() &&
         r.read_log().empty() && r.error_of(m).empty());
  expect(Runtime::stack_left() == UINT64_MAX);
  return wrong;
}

TEST(Fork, calls_of_a_child_are_refused_by_name) {
  Workshop w(options({{"interval", "1"}}));
  MethodId m = w.adder(1);
  ThreadScope scope(*w.runtime);
  Coroutine c(*w.runtime, [] {});
  EXPECT_EQ(w.call(m, {1}).bits, 2u);
  EXPECT_EQ(code_of_child([&] { return what_answers_otherwise(w, m, c.stack()); }), 0);
  EXPECT_EQ(w.call(m, {1}).bits, 2u);
}

TEST(Fork, c_answers_forked) {
  uptier_runtime* runtime = nullptr;
  ASSERT_EQ(uptier_runtime_create(nullptr, nullptr, &runtime, nullptr), UPTIER_OK);
  ASSERT_EQ(uptier_runtime_attach(runtime, nullptr), UPTIER_OK);
  EXPECT_EQ(code_of_child([&] {
              uptier_error error = {};
              bool right = uptier_runtime_attach(runtime, &error) == UPTIER_FORKED &&
                           error.status == UPTIER_FORKED &&
                           uptier_runtime_detach(runtime) == UPTIER_FORKED &&
                           uptier_runtime_flush(runtime) == UPTIER_FORKED &&
                           uptier_runtime_report_text(runtime, 1, nullptr, 0, nullptr, &error) ==
                               UPTIER_FORKED &&
                           uptier_stack_switch(runtime, nullptr, &error) == UPTIER_FORKED;
              uptier_runtime_destroy(runtime);
              return right ? 0 : 1;
            }),
            0);
  EXPECT_EQ(uptier_runtime_detach(runtime), UPTIER_OK);
  uptier_runtime_destroy(runtime);
}

int makes_its_own() {
  Workshop w(options({{"policy", "always"}, {"flush_first", "4"}, {"gdb", "on"}}));
  ThreadScope scope(*w.runtime);
  MethodId m = w.at_least(3);
  uint64_t total = 0;
  for (uint64_t n = 0; n < 100; ++n) total += w.call(m, {n}).bits;
  w.runtime->flush();
  return scope.status().ok() && total == 4950 + 3 + 2 + 1 ? 0 : 1;
}

// Another thread creates and destroys runtimes at the time of the fork, which takes process-wide
// locks. Not under AddressSanitizer: a child inherits its allocator's locks as other threads held
// them, and waits for ever.
TEST(Fork, a_child_makes_runtimes_of_its_own_on_the_thread_that_forked) {
  Workshop w(options({{"interval", "1"}}));
  MethodId m = w.adder(1);
  ThreadScope scope(*w.runtime);
  EXPECT_EQ(w.call(m, {1}).bits, 2u);
#if defined(__SANITIZE_ADDRESS__)
  std::atomic<bool> stop{true};
#else
  std::atomic<bool> stop{false};
#endif
  std::thread other([&] {
    while (!stop) makes_its_own();
  });
  for (int k = 0; k < 50; ++k) {
    ASSERT_EQ(code_of_child([] {
                int code = makes_its_own();
                return code != 0 ? code : code_of_child(makes_its_own);  // and a child of the child
              }),
              0)
        << k;
  }
  stop = true;
  other.join();
  EXPECT_EQ(w.call(m, {1}).bits, 2u);
}

}  // namespace
}  // namespace uptier::test::fork_test
