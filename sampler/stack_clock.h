// StackClock: what sends one thread a signal each time it has used so much processor time.
//
//   kTaskClock   perf_event_open, PERF_COUNT_SW_TASK_CLOCK: comes at the asked rate; refused in many
//                containers
//   kCpuTimer    timer_create, CLOCK_THREAD_CPUTIME_ID: comes at the kernel's tick at most (250 Hz is usual);
//                what was due in between arrives as overruns of the next signal
//
// The law: the weights that take() returns add up to the processor time since start(), but for the part of
// a period that is not over. So a signal that was late, or that the kernel held back, weighs more; none
// weighs nothing. Each period (of the event: each eighth) is drawn from 91 to 109 % of the mean one, against
// lockstep with a program that has a period of its own.
//
// A real-time signal, whose handler finds out by is_mine() whether it is this clock's. In the child of a fork
// there is no timer, and the event is the parent's: the clock does nothing there.
//
//   Thread: make, start and stop: any, one at a time. is_mine and take: the thread that is measured, in
//   its signal handler. The destructor: that thread, or when it is gone.
#pragma once

#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "uptier/options.h"
#include "uptier/result.h"

namespace uptier::sampler {

class StackClock {
 public:
  StackClock() = default;
  StackClock(const StackClock&) = delete;
  StackClock& operator=(const StackClock&) = delete;
  ~StackClock();

  // Makes it for the thread with the kernel's number `thread` and that clock, once. If the kernel refuses
  // kTaskClock, it is kCpuTimer, and engine() says so. Errors: kResourceExhausted.
  Status make(SampleEngine engine, int thread, clockid_t cpu_clock, int signal);
  bool made() const noexcept { return fd_ >= 0 || timer_ >= 0; }
  SampleEngine engine() const noexcept {
    return fd_ >= 0 ? SampleEngine::kTaskClock : SampleEngine::kCpuTimer;
  }
  // Begins, or goes on with another mean period.
  void start(uint64_t period_ns) noexcept;
  void stop() noexcept;
  bool running() const noexcept { return period_.load(std::memory_order_relaxed) != 0; }

  bool is_mine(const siginfo_t& info) const noexcept;
  // Whether the signal may be one of a clock that is gone.
  static bool may_be_late(const siginfo_t& info) noexcept;
  // Returns the processor time that the signal stands for, and arranges the next. 0: it is stopped.
  uint64_t take(const siginfo_t& info) noexcept;

  // Returns the processor time, from start() to stop(), of all that take() is to return. Thread: any.
  uint64_t asked_ns() const noexcept;

 private:
  static constexpr int kNone = -1;

  bool make_event(int thread, int signal) noexcept;
  Status make_timer(int thread, int signal);
  bool of_this_process() const noexcept;
  uint64_t now_ns() const noexcept;  // of the thread's processor time
  uint64_t draw(uint64_t period) noexcept;
  void arm(uint64_t period_ns) noexcept;
  void disarm() noexcept;

  std::atomic<uint64_t> period_{0};      // the mean; 0: stopped
  std::atomic<uint64_t> covered_ns_{0};  // processor time up to which samples have been taken
  std::atomic<uint64_t> asked_ns_{0};    // of spans that are over
  std::atomic<uint64_t> began_ns_{0};    // of the span under way
  std::atomic<uint64_t> drawn_{0};       // the period under way
  std::atomic<uint64_t> random_{0};
  uint32_t taken_ = 0;  // samples; the thread's own
  clockid_t cpu_clock_ = 0;
  std::atomic<int> fd_{kNone};     // of the event
  std::atomic<int> timer_{kNone};  // the kernel's number
  uint32_t made_at_fork_ = 0;
};

}  // namespace uptier::sampler
