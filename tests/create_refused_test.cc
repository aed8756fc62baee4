// What the system refuses a runtime is an error of create, not the end of the process.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/runtime_host.h"

namespace uptier::test {
namespace {

// Threads that are made while one is there are refused: no address space has room for their stacks.
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

TEST(CreateRefused, a_worker) {
  {
    NoThreads limit;
    Result<std::unique_ptr<Runtime>> r = Runtime::create(Options{});
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.error().code, ErrorCode::kResourceExhausted);
    EXPECT_TRUE(Runtime::create(options({{"workers", "0"}})).ok()) << "needs none";
  }
  EXPECT_TRUE(Runtime::create(Options{}).ok());
}

uint64_t address_space() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Returns how a child ends that creates a runtime with so much address space more than it has: 0
// when there is one, 1 when it was refused.
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
}  // namespace uptier::test
