// WorkerWake: wakes the worker, or with workers = 0 does its work on the calling thread.
//
//   Thread: any; without the state mutex if there is no worker thread.
#pragma once

#include "tiering/runtime/worker_thread.h"

namespace uptier::tiering {

class Worker;

class WorkerWake {
 public:
  // `thread`: null if there is none.
  explicit WorkerWake(WorkerThread* thread) : thread_(thread) {}

  // Sets the worker that does the work; call it before the first wake().
  void set_worker(Worker& worker) { worker_ = &worker; }
  void wake() noexcept {
    if (thread_ != nullptr) return thread_->wake();
    work_here();
  }
  bool has_thread() const noexcept { return thread_ != nullptr; }

 private:
  void work_here() noexcept;

  WorkerThread* const thread_;
  Worker* worker_ = nullptr;
};

}  // namespace uptier::tiering
