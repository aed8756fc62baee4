// The state mutex, as clang's thread-safety check sees it.
//
// A runtime has one state mutex. Its users reach it by different paths (engine_.state_mutex,
// env_.state_mutex), which the check cannot know to be one. So all of them name `state_lock`:
// HeldState takes it, and functions whose caller holds the state mutex require it. The check does
// not tell the mutexes of two runtimes apart; WaitedMutex::held() does, in asserts.
//
//   HeldState lock(engine.state_mutex);   takes it for this scope
//   void f() UPTIER_REQUIRES(state_lock)  the caller holds it
//   state_lock.known_held();              first in a lambda that runs with it, which the check
//                                         cannot see
#pragma once

#include <mutex>

#include "tiering/base/waited_mutex.h"
#include "uptier/thread_safety.h"

namespace uptier::tiering {

class UPTIER_LOCK StateLock {
 public:
  // Tells the check that the mutex is held. It does nothing.
  void known_held() const UPTIER_ASSERTS_HELD() {}
};
inline constexpr StateLock state_lock;

// Holds a runtime's state mutex. It may be released and taken again in between.
class UPTIER_HOLDER HeldState {
 public:
  explicit HeldState(WaitedMutex& mutex) UPTIER_ACQUIRE(state_lock) : mutex_(mutex) {
    mutex_.lock();
  }
  // The caller has taken it by try_lock().
  HeldState(WaitedMutex& mutex, std::adopt_lock_t) UPTIER_ACQUIRE(state_lock) : mutex_(mutex) {}
  HeldState(const HeldState&) = delete;
  HeldState& operator=(const HeldState&) = delete;
  ~HeldState() UPTIER_RELEASE() {
    if (held_) mutex_.unlock();
  }

  void lock() UPTIER_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }
  void unlock() UPTIER_RELEASE() {
    held_ = false;
    mutex_.unlock();
  }

 private:
  WaitedMutex& mutex_;
  bool held_ = true;
};

}  // namespace uptier::tiering
