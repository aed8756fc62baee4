// WorkerThread: the background thread, its wake-ups, and whether it has work.
//
//   asleep --wake()--> awake --begin_locked()--> busy --rest_locked()--> idle --await_wake()--> asleep
//
// Law: if a thread has stored work where the worker finds it and calls wake() afterwards, the work
// is done, however many threads do so at once: there is one release until the worker has taken it.
// The system may refuse a thread, which std::thread would report by an exception. Without a thread
// (`workers = 0`) the worker is never busy, and only stopping() has a meaning.
//
// Wake-ups that follow one another closely are gathered: each costs a system call of the thread that
// wakes, and a round of the worker, which takes the state mutex.
//
//   Thread: wake(), stopping(): any, without a lock; functions with _locked: with the state mutex; the
//   rest: the owner, or the worker itself.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <semaphore>
#include <thread>
#include <utility>

namespace uptier::tiering {

class WorkerThread {
 public:
  WorkerThread() = default;
  ~WorkerThread() { join(); }
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Starts a thread that calls `run` with `it`, once. Returns false if the system refuses.
  bool start(void* (*run)(void*), void* it) noexcept {
    assert(!runs_ && !stopping());
    runs_ = ::pthread_create(&thread_, nullptr, run, it) == 0;
    return runs_;
  }
  // Stops the thread if it was started, and waits for its end.
  void stop() noexcept {
    stopping_.store(true, std::memory_order_release);  // pairs with stopping()
    wake_.release();
    join();
  }
  bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }

  // Release pairs with the acquire of the worker that takes the wake-up: it sees the stored work.
  void wake() noexcept {
    if (!wake_pending_.exchange(true, std::memory_order_acq_rel)) wake_.release();
  }
  // Sleeps until it is woken, or at most this long; 0: no limit.
  void await_wake(uint64_t most_ms) {
    if (most_ms != 0) {
      if (!wake_.try_acquire_for(std::chrono::milliseconds(most_ms))) return;
    } else {
      wake_.acquire();
    }
    gather();
    // An exchange, because it acquires from each thread that found a wake-up pending: its work is
    // seen.
    wake_pending_.exchange(false, std::memory_order_acq_rel);
  }

  // The worker begins to work; it has no work left.
  void begin_locked() { idle_ = false; }
  void rest_locked() { idle_ = true; }
  // Wakes threads that wait for the worker to be idle.
  void tell_idle() { told_.notify_all(); }
  bool idle_locked() const { return idle_; }
  // Wakes the worker and releases `lock` until the worker is idle, or for 10 ms.
  template <typename Lock>
  void await_idle(Lock& lock) {
    wake();
    told_.wait_for(lock, std::chrono::milliseconds(10));
  }

 private:
  using Clock = std::chrono::steady_clock;
  // A wake-up that comes this soon after the last one is followed by others, and they wait this long.
  static constexpr auto kSoon = std::chrono::milliseconds(1);
  static constexpr auto kGather = std::chrono::microseconds(200);

  // Waits for more work if the last wake-up was just now. What comes meanwhile wakes nobody.
  void gather() {
    const auto before = std::exchange(woken_, Clock::now());
    if (woken_ - before < kSoon && !stopping()) std::this_thread::sleep_for(kGather);
  }
  void join() noexcept {
    if (runs_) ::pthread_join(thread_, nullptr);
    runs_ = false;
  }

  pthread_t thread_ = {};
  bool runs_ = false;
  std::counting_semaphore<> wake_{0};
  std::atomic<bool> wake_pending_{false};  // a release that the worker has not taken yet
  std::atomic<bool> stopping_{false};
  Clock::time_point woken_{};  // the worker's own
  bool idle_ = true;
  std::condition_variable_any told_;
};

}  // namespace uptier::tiering
