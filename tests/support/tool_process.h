// tool_process.h: the tool as a process that runs beside the test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test_paths.h"

namespace uptier::test {

class ToolProcess {
 public:
  // Starts the tool with these words. Its output goes to `out`, and its messages to `err`.
  ToolProcess(std::vector<std::string> words, const std::string& out = "/dev/null",
              const std::string& err = "/dev/null")
      : id_(fork()) {
    if (id_ != 0) return;
    const int files[] = {open("/dev/null", O_RDONLY), open(out.c_str(), O_WRONLY | O_CREAT, 0600),
                         open(err.c_str(), O_WRONLY | O_CREAT, 0600)};
    for (int fd = 0; fd < 3; ++fd) dup2(files[fd], fd);
    words.insert(words.begin(), UPTIER_TOOL);
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  ~ToolProcess() {
    if (id_ != 0) end(SIGKILL);
  }
  ToolProcess(const ToolProcess&) = delete;
  ToolProcess& operator=(const ToolProcess&) = delete;

  pid_t id() const { return id_; }
  std::string name() const { return std::to_string(id_); }
  void signal(int number) const { kill(id_, number); }
  // Stops it, until SIGCONT. Returns when all its threads have stopped.
  void stop() const {
    signal(SIGSTOP);
    ASSERT_EQ(waitpid(id_, nullptr, WUNTRACED), id_);
  }
  // Waits for its end. Returns its exit code, or the signal that ended it as a negative number.
  int wait() {
    int status = 0;
    const pid_t ended = waitpid(std::exchange(id_, 0), &status, 0);
    EXPECT_GT(ended, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // Ends it by a signal; see wait().
  int end(int number) {
    signal(number);
    return wait();
  }
  // Waits until it has used `ms` of processor time.
  void await_cpu(long ms) const {
    for (int i = 0; i < 20'000; ++i) {
      std::ifstream stat("/proc/" + name() + "/stat");
      std::string field;
      for (int n = 1; n < 14; ++n) stat >> field;
      long user = 0, system = 0;
      ASSERT_TRUE(stat >> user >> system) << "it has ended by itself";
      if ((user + system) * 1000 / sysconf(_SC_CLK_TCK) >= ms) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    FAIL() << "it runs no code";
  }

 private:
  pid_t id_;
};

}  // namespace uptier::test
