// WorkerThread: the thread in the background, what wakes it, and whether it has anything to do.
//
//   asleep --wake()--> awake --begin_locked()--> busy --rest_locked()--> idle --await_wake()--> asleep
//
// Law: whoever has put something where the worker finds it and calls wake() afterwards is seen to,
// however many do so at once: there is one release until the worker has taken it. A thread may be
// refused, which std::thread would say by an exception. Without one (`workers = 0`) nothing is ever
// busy, and stopping() alone means something.
//
//   Thread: wake(), stopping() any, without a lock; what ends in _locked with the state mutex; the
//   rest its owner's, or the worker's own.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <semaphore>

namespace uptier::tiering {

class WorkerThread {
 public:
  WorkerThread() = default;
  ~WorkerThread() { join(); }
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Has a thread call `run` with `it`, once. Returns false when none is to be had.
  bool start(void* (*run)(void*), void* it) noexcept {
    assert(!runs_ && !stopping());
    runs_ = ::pthread_create(&thread_, nullptr, run, it) == 0;
    return runs_;
  }
  // Has it end, and waits for that, if it was started.
  void stop() noexcept {
    stopping_.store(true, std::memory_order_release);  // pairs with stopping()
    wake_.release();
    join();
  }
  bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }

  // Release pairs with the acquire of who takes the wake: the worker sees what there is to do.
  void wake() noexcept {
    if (!wake_pending_.exchange(true, std::memory_order_acq_rel)) wake_.release();
  }
  // Sleeps until it is woken, or for so long at most; 0: however long.
  void await_wake(uint64_t most_ms) {
    if (most_ms != 0) {
      if (!wake_.try_acquire_for(std::chrono::milliseconds(most_ms))) return;
    } else {
      wake_.acquire();
    }
    wake_pending_.store(false, std::memory_order_release);
  }

  // The worker takes what there is, and has nothing left.
  void begin_locked() { idle_ = false; }
  void rest_locked() { idle_ = true; }
  // Tells those who wait for the latter.
  void tell_idle() { told_.notify_all(); }
  bool idle_locked() const { return idle_; }
  // Wakes the worker and gives `lock` up until it has told of being idle, or for 10 ms.
  template <typename Lock>
  void await_idle(Lock& lock) {
    wake();
    told_.wait_for(lock, std::chrono::milliseconds(10));
  }

 private:
  void join() noexcept {
    if (runs_) ::pthread_join(thread_, nullptr);
    runs_ = false;
  }

  pthread_t thread_ = {};
  bool runs_ = false;
  std::counting_semaphore<> wake_{0};
  std::atomic<bool> wake_pending_{false};  // a release that the worker has not taken yet
  std::atomic<bool> stopping_{false};
  bool idle_ = true;
  std::condition_variable_any told_;
};

}  // namespace uptier::tiering
