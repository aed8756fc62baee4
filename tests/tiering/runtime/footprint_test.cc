// What memory a runtime takes: as a rule, what its methods need, not what its limits allow.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "tests/support/hardened.h"
#include "tests/support/workshop.h"

namespace uptier::test::footprint_test {
namespace {

// Returns a value of /proc/self/status in KiB.
int64_t kib(const char* key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) == 0) return std::stoll(line.substr(std::strlen(key)));
  }
  return -1;
}

// Memory of the process that is no file's.
int64_t own_kib() { return kib("RssAnon:") + kib("RssShmem:"); }

// Calls methods in a child, and returns what it has written.
template <typename F>
std::string in_child(F f) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    std::string said = f();
    ssize_t n = write(ends[1], said.data(), said.size());
    _exit(n < 0 ? 1 : 0);
  }
  close(ends[1]);
  std::string said;
  char buffer[256];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, n);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << said;
  return said;
}

int64_t growth_with(uint64_t methods) {
  return std::stoll(in_child([=] {
    const int64_t before = own_kib();
    Workshop w{Options()};
    ThreadScope scope(*w.runtime);
    for (uint64_t i = 0; i < methods; ++i) {
      MethodId m = w.adder(i);
      for (uint64_t n = 0; n < 200; ++n) (void)w.call(m, {n});
    }
    w.runtime->flush();
    return std::to_string(own_kib() - before);
  }));
}

TEST(Footprint, runtime_with_a_hundred_methods_takes_two_megabytes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "SKIPPED: needs a build without sanitizer, which takes memory itself";
#endif
  const int64_t one = growth_with(1), hundred = growth_with(100);
  std::printf("resident: %ld KiB with one method, %ld KiB with a hundred\n", one, hundred);
  EXPECT_LT(hundred, 2048);
}

// Little address space: smaller reservations, and a line that says so.
TEST(Footprint, runtime_fits_into_what_address_space_is_left_and_says_so) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "SKIPPED: needs a build without sanitizer, which reserves terabytes itself";
#endif
  for (int64_t more : {48, 64, 100, 200, 600}) {
    const std::string said = in_child([=]() -> std::string {
      const int64_t size = (kib("VmSize:") << 10) + (more << 20);
      rlimit limit{static_cast<rlim_t>(size), RLIM_INFINITY};
      setrlimit(RLIMIT_AS, &limit);
      std::string log;
      Options o;
      o.log_user = &log;
      o.log = [](void* to, LogLevel, std::string_view line) {
        static_cast<std::string*>(to)->append(line).append("\n");
      };
      Workshop w{o};
      if (w.runtime == nullptr) return "refused";
      ThreadScope scope(*w.runtime);
      if (!scope.status().ok()) return scope.status().error().message;
      for (uint64_t i = 0; i < 100; ++i) {
        MethodId m = w.adder(i);
        if (!m.valid() || w.call(m, {i}).bits != 2 * i) return "a wrong answer";
      }
      return "runs\n" + log;
    });
    EXPECT_EQ(said.rfind("runs\n", 0), 0u) << more << " MiB: " << said;
    if (more <= 200) {
      EXPECT_NE(said.find("code_budget is "), said.npos) << more << " MiB: " << said;
      EXPECT_NE(said.find("ulimit -v"), said.npos) << more << " MiB: " << said;
    }
  }
}

}  // namespace
}  // namespace uptier::test::footprint_test
