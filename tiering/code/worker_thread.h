// WorkerThread: a thread that may be refused, which std::thread would say by an exception.
//
//   Thread: its owner's.
#pragma once

#include <pthread.h>

namespace uptier::tiering {

class WorkerThread {
 public:
  WorkerThread() = default;
  ~WorkerThread() { join(); }
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Has a thread call `run` with `it`, once. Returns false when none is to be had.
  bool start(void* (*run)(void*), void* it) noexcept {
    runs_ = ::pthread_create(&thread_, nullptr, run, it) == 0;
    return runs_;
  }
  // Waits for its end, if it was started.
  void join() noexcept {
    if (runs_) ::pthread_join(thread_, nullptr);
    runs_ = false;
  }

 private:
  pthread_t thread_ = {};
  bool runs_ = false;
};

}  // namespace uptier::tiering
