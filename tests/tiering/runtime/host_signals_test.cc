// Faults become traps whatever signal masks and alternate stacks a host thread has; both are
// restored when it detaches.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <thread>

#include "tests/support/workshop.h"

namespace uptier::test::host_signals_test {
namespace {

MethodId add_division(Workshop& w) {
  return w.add("hundredth", kOne,
               [](FunctionBuilder& b) { b.ret(b.binary(Opcode::kDivU, b.i64(100), b.param(0))); });
}

MethodId add_load(Workshop& w) {
  return w.add("load", kOne, [](FunctionBuilder& b) {
    b.ret(b.load(Opcode::kLoad, kLong, {.base = b.param(0), .flags = kMemTraps}));
  });
}

void expect_traps(Workshop& w) {
  EXPECT_EQ(w.call(add_division(w), {0}).trap.code, TrapCode::kDivideByZero);
  EXPECT_EQ(w.call(add_load(w), {8}).trap.code, TrapCode::kOutOfBoundsMemory);
}

template <typename F>
void on_a_thread(F f) {
  std::thread(f).join();
}

TEST(HostSignals, that_are_blocked_hold_no_trap_back) {
  Workshop w(options({{"workers", "0"}}));
  on_a_thread([&] {
    sigset_t all, before, after;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    expect_traps(w);  // each invoke attaches the thread
    {
      ThreadScope scope(*w.runtime);
      expect_traps(w);
      sigset_t now;
      pthread_sigmask(SIG_SETMASK, nullptr, &now);
      EXPECT_EQ(sigismember(&now, SIGSEGV), 0);
      EXPECT_EQ(sigismember(&now, SIGTERM), 1) << "none of ours";
    }
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (int s = 1; s < NSIG; ++s) EXPECT_EQ(sigismember(&after, s), sigismember(&before, s)) << s;
  });
}

// An alternate signal stack of `bytes` above a guard page.
class HostStack {
 public:
  explicit HostStack(size_t bytes) : bytes_(bytes) {
    memory_ = static_cast<char*>(
        mmap(nullptr, kPage + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_, kPage, PROT_NONE);
    stack_t s = {};
    s.ss_sp = memory_ + kPage;
    s.ss_size = bytes;
    accepted_ = sigaltstack(&s, &before_) == 0;
  }
  ~HostStack() {
    sigaltstack(&before_, nullptr);
    munmap(memory_, kPage + bytes_);
  }
  bool accepted() const { return accepted_; }
  bool in_force() const {
    stack_t now = {};
    sigaltstack(nullptr, &now);
    return now.ss_sp == memory_ + kPage && now.ss_size == bytes_ && now.ss_flags == 0;
  }

 private:
  static constexpr size_t kPage = 4096;
  const size_t bytes_;
  char* memory_;
  stack_t before_ = {};
  bool accepted_;
};

TEST(HostSignals, alternate_stacks_that_are_too_small_are_replaced_while_attached) {
  Workshop w(options({{"workers", "0"}}));
  on_a_thread([&] {
    int accepted = 0;
    for (size_t bytes : {2048, 4096, 8192, 16384}) {
      HostStack small(bytes);
      if (!small.accepted()) continue;
      ++accepted;
      expect_traps(w);
      {
        ThreadScope scope(*w.runtime);
        EXPECT_FALSE(small.in_force());
        expect_traps(w);
      }
      EXPECT_TRUE(small.in_force()) << bytes;
    }
    EXPECT_GT(accepted, 0);
  });
}

TEST(HostSignals, an_alternate_stack_with_room_is_kept) {
  Workshop w(options({{"workers", "0"}}));
  on_a_thread([&] {
    HostStack large(64 << 10);
    ThreadScope scope(*w.runtime);
    EXPECT_TRUE(large.in_force());
    expect_traps(w);
  });
}

}  // namespace
}  // namespace uptier::test::host_signals_test
