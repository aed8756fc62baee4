// TimeLimit: ends a run that takes too long.
//
//   the time is over    the guest is interrupted, again and again: it may be between two calls
//   kGrace later        the process ends: a host function has not returned, or a compilation
//
// Thread: made and destroyed by the thread that runs the program.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "uptier/runtime.h"

namespace uptier::tools {

class TimeLimit {
 public:
  // `seconds` 0: none. The runtime must outlive this.
  TimeLimit(Runtime& runtime, double seconds);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  void watch();

  Runtime& runtime_;
  const double seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;  // the run; guarded by the mutex
  std::thread watcher_;
};

// Says that the time is over. Returns the exit code for it.
int timed_out(double seconds);

}  // namespace uptier::tools
