// Random numbers in a process whose kernel refuses them from some point on.
#include "jit/code/random.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>

namespace uptier::jit {
namespace {

// Makes getrandom fail in this process from now on. Returns whether that was possible.
bool refuse_getrandom() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{std::size(rules), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Returns the exit code of a child process that runs `f`.
template <typename F>
int in_child(F&& f) {
  const pid_t child = fork();
  if (child == 0) _exit(f());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(KernelRandom, a_kernel_that_refuses_later_is_done_without) {
  EXPECT_EQ(in_child([] {
              uint64_t first = 0;
              if (!kernel_random(&first, sizeof first)) return 1;
              if (!refuse_getrandom()) return 2;
              std::set<uint64_t> drawn = {first};
              for (int i = 0; i < 1000; ++i) {
                uint64_t words[2] = {};
                if (!kernel_random(words, 13)) return 3;  // not a multiple of a word
                drawn.insert(words[0]);
                if (words[1] >> 40 != 0) return 4;
              }
              return drawn.size() == 1001 ? 0 : 5;
            }),
            0);
}

}  // namespace
}  // namespace uptier::jit
