#include "jit/code/global_locks.h"

#include <pthread.h>

#include "jit/code/code_registry.h"

namespace uptier::jit {
namespace {

// Global as what they guard is; the handlers of a fork have no argument.
constinit std::mutex g_locks[3];

void before_fork() {
  for (std::mutex& m : g_locks) m.lock();
}

void after_fork() {
  for (std::mutex& m : g_locks) m.unlock();
}

void in_child() {
  forget_readers_of_other_threads();
  after_fork();
}

}  // namespace

std::mutex& global_lock(GlobalLock which) noexcept { return g_locks[static_cast<size_t>(which)]; }

bool hold_locks_over_forks() noexcept {
  static const bool held = pthread_atfork(before_fork, after_fork, in_child) == 0;
  return held;
}

}  // namespace uptier::jit
