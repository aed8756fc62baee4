// A program that is ended by a signal leaves its profile.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "test_paths.h"
#include "tests/support/program_runs.h"
#include "uptier/profile_file.h"

namespace uptier::save_on_signal_test {
namespace {

// Runs the tool and discards its output.
pid_t start_tool(std::vector<std::string> args) {
  pid_t child = fork();
  if (child != 0) return child;
  int null = open("/dev/null", O_RDWR);
  for (int fd : {0, 1, 2}) dup2(null, fd);
  args.insert(args.begin(), UPTIER_TOOL);
  std::vector<char*> argv;
  for (std::string& a : args) argv.push_back(a.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

// Waits until the process has used `ms` of processor time.
void await_cpu(pid_t pid, long ms) {
  for (;;) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string field;
    for (int n = 1; n < 14; ++n) stat >> field;
    long user = 0, system = 0;
    ASSERT_TRUE(stat >> user >> system) << "it has ended by itself";
    if ((user + system) * 1000 / sysconf(_SC_CLK_TCK) >= ms) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

class SaveOnSignal : public ::testing::TestWithParam<int> {};

TEST_P(SaveOnSignal, leaves_the_profile_and_ends_by_the_signal) {
  char name[] = "/tmp/uptier-signal-XXXXXX";
  const std::string dir = mkdtemp(name), path = dir + "/p.upf";
  // With this argument it runs for minutes.
  pid_t child = start_tool({"run", "--profile", path, test::wasm_path("bytecode"), "1000000"});
  await_cpu(child, 100);
  ASSERT_EQ(kill(child, GetParam()), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), GetParam());
  const std::string bytes = test::slurp(path);
  const Result<ProfileFile> file = profile_from_file(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(file.ok());
  uint64_t most = 0;
  for (const auto& [key, m] : file->profile.methods) {
    for (uint64_t n : m.estimates) most = std::max(most, n);
  }
  EXPECT_GT(most, 10'000u) << "of " << file->profile.methods.size() << " methods";
  std::filesystem::remove_all(dir);
}

INSTANTIATE_TEST_SUITE_P(Both, SaveOnSignal, ::testing::Values(SIGINT, SIGTERM),
                         [](const auto& i) { return i.param == SIGINT ? "SIGINT" : "SIGTERM"; });

}  // namespace
}  // namespace uptier::save_on_signal_test
