// StackClock: sends one thread a signal after each period of processor time.
//
//   kTaskClock   perf_event_open, PERF_COUNT_SW_TASK_CLOCK: signals at the requested rate; refused in many
//                containers
//   kCpuTimer    timer_create, CLOCK_THREAD_CPUTIME_ID: signals at most at the kernel's tick (usually 250 Hz);
//                missed periods arrive as overruns of the next signal
//
// The law: the weights that take() returns add up to the processor time since start(), except for
// the current, incomplete period. So a signal that was late, or that the kernel held back, weighs
// more, and none weighs nothing. Each period (for the event: every eighth) is drawn from 91 to 109
// % of the mean one, to avoid lockstep with a periodic program.
//
// The signal is a real-time signal; its handler uses is_mine() to find out whether it comes from
// this clock. In the child of a fork the timer does not exist, and the event belongs to the parent:
// the clock does nothing there.
//
//   Thread: make, start and stop: any, one at a time. is_mine and take: the measured thread, in its signal
//   handler. The destructor: that thread, or any after it has ended.
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

  // Creates the event or timer for the thread with the kernel's number `thread` and this clock;
  // call it once. If the kernel refuses kTaskClock, uses kCpuTimer; engine() says which. Errors:
  // kResourceExhausted.
  Status make(SampleEngine engine, int thread, clockid_t cpu_clock, int signal);
  bool made() const noexcept { return fd_ >= 0 || timer_ >= 0; }
  SampleEngine engine() const noexcept {
    return fd_ >= 0 ? SampleEngine::kTaskClock : SampleEngine::kCpuTimer;
  }
  // Starts, or changes the mean period.
  void start(uint64_t period_ns) noexcept;
  void stop() noexcept;
  bool running() const noexcept { return period_.load(std::memory_order_relaxed) != 0; }

  bool is_mine(const siginfo_t& info) const noexcept;
  // Says whether the signal may come from a clock that has been destroyed.
  static bool may_be_late(const siginfo_t& info) noexcept;
  // Returns the processor time that the signal stands for, and arms the next one. 0: the clock is
  // stopped.
  uint64_t take(const siginfo_t& info) noexcept;

  // Returns the total processor time between start() and stop(), which take() should account for.
  // Thread: any.
  uint64_t asked_ns() const noexcept;

 private:
  static constexpr int kNone = -1;

  bool make_event(int thread, int signal) noexcept;
  Status make_timer(int thread, int signal);
  bool of_this_process() const noexcept;
  uint64_t now_ns() const noexcept;  // the thread's processor time
  uint64_t draw(uint64_t period) noexcept;
  void arm(uint64_t period_ns) noexcept;
  void disarm() noexcept;

  std::atomic<uint64_t> period_{0};      // the mean; 0: stopped
  std::atomic<uint64_t> covered_ns_{0};  // processor time covered by samples
  std::atomic<uint64_t> asked_ns_{0};    // of spans that are over
  std::atomic<uint64_t> began_ns_{0};    // begin of the current span
  std::atomic<uint64_t> drawn_{0};       // the current period
  std::atomic<uint64_t> random_{0};
  uint32_t taken_ = 0;  // samples; used by the thread only
  clockid_t cpu_clock_ = 0;
  std::atomic<int> fd_{kNone};     // the event
  std::atomic<int> timer_{kNone};  // the kernel's number of the timer
  uint32_t made_at_fork_ = 0;
};

}  // namespace uptier::sampler
