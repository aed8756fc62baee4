#include "jit/code/global_locks.h"

#include <pthread.h>

#include "jit/code/code_readers.h"

namespace uptier::jit {
namespace {

// Global because they guard global data; the handlers of a fork have no argument.
constinit CheckedLock<std::mutex> g_locks[3];

// Not checked: a loop takes all locks, and another function releases them.
void before_fork() UPTIER_UNCHECKED {
  for (CheckedLock<std::mutex>& m : g_locks) m.lock();
}

void after_fork() UPTIER_UNCHECKED {
  for (CheckedLock<std::mutex>& m : g_locks) m.unlock();
}

void in_child() {
  forget_readers_of_other_threads();
  after_fork();
}

}  // namespace

CheckedLock<std::mutex>& global_lock(GlobalLock which) noexcept {
  return g_locks[static_cast<size_t>(which)];
}

bool hold_locks_over_forks() noexcept {
  static const bool held = pthread_atfork(before_fork, after_fork, in_child) == 0;
  return held;
}

}  // namespace uptier::jit
