// If the system refuses a resource, Runtime::create returns an error and the process goes on.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/runtime_host.h"
#include "tools/save_on_signal.h"

namespace uptier::test::create_refused_test {
namespace {

// While an object of this class exists, creating threads fails: their stacks do not fit into the
// address space.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, size_t{1} << 47);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

TEST(CreateRefused, a_worker_is_done_without) {
  NoThreads limit;
  std::string said;
  Options o = options({{"policy", "always"}});
  o.log = [](void* to, LogLevel, std::string_view line) { *static_cast<std::string*>(to) += line; };
  o.log_user = &said;
  CollectingSink sink;
  {
    IrRuntime r(parse_or_die(kSumText), o, &sink);
    ASSERT_NE(r.runtime, nullptr);
    EXPECT_NE(said.find("refused a thread for the worker"), std::string::npos) << said;
    EXPECT_NE(said.find("workers=0"), std::string::npos) << said;
    ThreadScope scope(*r.runtime);
    for (uint64_t i = 1; i < 2000; ++i) ASSERT_EQ(r.call("sum", {i}).bits, i * (i + 1) / 2);
    EXPECT_EQ(r.report_of("sum").tier, Tier::kOptimized);
  }
  EXPECT_EQ(sink.all<Provenance>().size(), 1u) << "one runtime";
  EXPECT_TRUE(sink.finished);
}

TEST(CreateRefused, a_thread_that_saves_on_signals_is_done_without) {
  Result<std::unique_ptr<Runtime>> r = Runtime::create(options({{"workers", "0"}}));
  ASSERT_TRUE(r.ok());
  NoThreads limit;
  tools::HeldSignals held;
  tools::SaveOnSignal saves(**r);
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  EXPECT_EQ(sigismember(&now, SIGTERM), 0) << "it ends the process as ever";
}

uint64_t address_space() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Returns how a child ends that creates a runtime with `more` bytes of address space beyond its
// current size: 0 if that works, 1 if it is refused.
int create_with(uint64_t more) {
  pid_t child = fork();
  if (child == 0) {
    rlimit limit{address_space() + more, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    Result<std::unique_ptr<Runtime>> r = Runtime::create(Options{});
    _exit(r.ok() ? 0 : r.error().code == ErrorCode::kResourceExhausted ? 1 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(CreateRefused, address_space_wherever_it_ends) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "SKIPPED: needs a build without sanitizer, which reserves terabytes itself";
#endif
  int refused = 0, made = 0;
  for (uint64_t more = 1 << 20; made == 0 && more < uint64_t{1} << 32; more += 2 << 20) {
    int end = create_with(more);
    refused += end == 1;
    made += end == 0;
    EXPECT_LE(end, 1) << (more >> 20) << " MiB";
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace uptier::test::create_refused_test
