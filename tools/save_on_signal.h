// SaveOnSignal: what a run has learnt is saved when SIGINT or SIGTERM ends it.
//
//   HeldSignals (before any thread) --> runtime, worker --> SaveOnSignal: a thread that waits
//        signal --> save_profile --> the process ends by that signal, as it would have
//
// Nothing runs in a signal handler, and the guest is not stopped for it: of its threads that is
// saved which they had flushed. Other signals of the two wait as long: `timeout` sends its own twice.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>

#include "uptier/runtime.h"

namespace uptier::tools {

// Holds both signals back from this thread, and from those that it starts meanwhile.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_;
};

class SaveOnSignal {
 public:
  // The signals are held, and `runtime` outlives this. Where a thread is refused nobody waits, which
  // is said: the signals end the process at once, and nothing is saved.
  explicit SaveOnSignal(Runtime& runtime);
  ~SaveOnSignal();
  SaveOnSignal(const SaveOnSignal&) = delete;
  SaveOnSignal& operator=(const SaveOnSignal&) = delete;

 private:
  void wait();

  Runtime& runtime_;
  std::atomic<bool> over_{false};
  bool waits_ = false;
  pthread_t waiter_ = {};
};

}  // namespace uptier::tools
