// interrupt_runs.h: guests that never end by themselves, and a thread that runs one until it is
// interrupted.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/support/ir_programs.h"
#include "tests/support/runtime_host.h"
#include "uptier/interrupted.h"

namespace uptier::test {

// Blocks in poll on a pipe that never becomes readable, until the guest is interrupted.
extern "C" inline void interrupt_test_wait() {
  static int ends[2] = {-1, -1};
  static const int made = ::pipe(ends);
  pollfd p{ends[0], POLLIN, 0};
  while (made == 0 && ::poll(&p, 1, -1) < 0 && !interrupted()) {}
}
inline std::atomic<bool> g_interrupt_started{false};
extern "C" inline void interrupt_test_started() { g_interrupt_started.store(true); }
// A host function that does not check for interrupts, and returns.
extern "C" inline int64_t interrupt_test_work(int64_t x) {
  for (int i = 0; i < 200; ++i) asm volatile("" : "+r"(x));
  return x + 1;
}

inline const HostFunction kInterruptHosts[] = {
    {"started", reinterpret_cast<const void*>(interrupt_test_started), {{}, Type::kNone}},
    {"wait", reinterpret_cast<const void*>(interrupt_test_wait), {{}, Type::kNone}},
    {"work", reinterpret_cast<const void*>(interrupt_test_work), {{Type::kI64}, Type::kI64}},
};

struct Guest {
  const char* name;
  const char* text;  // defines @f(i64) -> i64; its argument does not matter
};

// Small loops, leaf functions, long runs of stores, recursion, host functions.
inline constexpr Guest kGuests[] = {
    {"add", R"(
func @f(i64) -> i64 {
b0(v0: i64):
  call_host @started.() ()
  v9 = const.i64 6364136223846793005
  v8 = const.i64 1
  jump b1(v0)
b1(v1: i64):
  loop_header 0 pc=0 []
  v2 = mul.i64 v1, v9
  v3 = add.i64 v2, v8
  jump b1(v3)
}
)"},
    {"tiny", R"(
func @f(i64) -> i64 {
b0(v0: i64):
  call_host @started.() ()
  jump b1
b1:
  loop_header 0 pc=0 []
  jump b1
}
)"},
    {"leaf", R"(
func @leaf(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 3
  v2 = mul.i64 v0, v1
  return v2
}
func @f(i64) -> i64 {
b0(v0: i64):
  call_host @started.() ()
  jump b1(v0)
b1(v1: i64):
  loop_header 0 pc=0 []
  v2 = call @leaf(v1)
  jump b1(v2)
}
)"},
    {"stores", R"(
func @f(i64) -> i64 {
b0(v0: i64):
  call_host @started.() ()
  v9 = const.i32 0
  v8 = const.i32 1
  v7 = const.i32 1048576
  jump b1
b1:
  loop_header 0 pc=0 []
  jump b2(v9)
b2(v1: i32):
  loop_header 1 pc=0 []
  store8.i32 v9, v0[v1] traps
  v2 = add.i32 v1, v8
  v3 = lt_u.i32 v2, v7
  branch v3, b2(v2), b1
}
)"},
    {"recursion", "\n" UPTIER_TEST_FIB R"(func @f(i64) -> i64 {
b0(v0: i64):
  call_host @started.() ()
  v1 = const.i64 80
  v2 = call @fib(v1)
  return v2
}
)"},
    {"deep", R"(
func @down(i64) -> i64 {
b0(v0: i64):
  v1 = eqz.i64 v0
  branch v1, b1, b2
b1:
  return v0
b2:
  v3 = const.i64 1
  v4 = sub.i64 v0, v3
  v5 = call @down(v4)
  v6 = add.i64 v5, v3
  return v6
}
func @f(i64) -> i64 {
b0(v0: i64):
  call_host @started.() ()
  v1 = const.i64 2000
  jump b1
b1:
  loop_header 0 pc=0 []
  v2 = call @down(v1)
  jump b1
}
)"},
    {"host", R"(
func @f(i64) -> i64 {
b0(v0: i64):
  call_host @started.() ()
  jump b1(v0)
b1(v1: i64):
  loop_header 0 pc=0 []
  v2 = call_host @work.(i64)->i64 (v1)
  jump b1(v2)
}
)"},
    {"wait", R"(
func @f(i64) -> i64 {
b0(v0: i64):
  call_host @started.() ()
  jump b1
b1:
  loop_header 0 pc=0 []
  call_host @wait.() () may_trap
  jump b1
}
)"},
};

using Clock = std::chrono::steady_clock;

// Runs @f on its own thread again and again; the caller interrupts each run.
class StoppedGuest {
 public:
  explicit StoppedGuest(IrRuntime& r) : r_(r) {
    thread_ = std::thread([this] { run(); });
    while (number_.load() == 0) std::this_thread::yield();
  }
  ~StoppedGuest() {
    go_.store(-1);
    thread_.join();
  }

  // Returns how long the invoke ran on after the interrupt, in ns; 0 if it did not end because of
  // it.
  uint64_t stop_after(std::chrono::microseconds pause) {
    done_.store(false);
    g_interrupt_started.store(false);
    go_.store(1);
    while (!g_interrupt_started.load()) std::this_thread::sleep_for(std::chrono::microseconds(20));
    std::this_thread::sleep_for(pause);
    auto asked = Clock::now();
    Status s = r_.runtime->interrupt(number_.load());
    EXPECT_TRUE(s) << s.error().message;
    while (!done_.load()) std::this_thread::sleep_for(std::chrono::microseconds(20));
    EXPECT_EQ(outcome_.trap.code, TrapCode::kInterrupted);
    auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(ended_ - asked).count();
    return outcome_.trap.code == TrapCode::kInterrupted ? static_cast<uint64_t>(std::max(took, 1L))
                                                        : 0;
  }

 private:
  void run() {
    ThreadScope scope(*r_.runtime);
    number_.store(r_.runtime->thread_number());
    for (;;) {
      int go = go_.load();
      if (go < 0) return;
      if (go == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        continue;
      }
      uint64_t arg = reinterpret_cast<uintptr_t>(buffer_.data());
      MethodId f = r_.method("f");
      go_.store(0);
      outcome_ = r_.runtime->invoke(f, {&arg, 1});
      ended_ = Clock::now();
      done_.store(true);
    }
  }

  IrRuntime& r_;
  std::thread thread_;
  std::atomic<int> go_{0};
  std::atomic<uint32_t> number_{0};
  std::atomic<bool> done_{false};
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(1 << 20);
  Outcome outcome_;
  Clock::time_point ended_;
};

}  // namespace uptier::test
