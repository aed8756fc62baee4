// thread_safety.h: annotations that say which lock guards what, for clang to check.
//
// clang's -Wthread-safety reports an access to a guarded member without its lock, and a call of a
// function that requires a lock which the caller does not hold. Other compilers ignore the
// annotations. The standard library's locks have none, so CheckedLock wraps a lock and Held holds
// it. For the library's own code; embedders do not need it.
#pragma once

#ifdef __clang__
#define UPTIER_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define UPTIER_THREAD_ATTRIBUTE(x)
#endif

#define UPTIER_LOCK UPTIER_THREAD_ATTRIBUTE(capability("lock"))  // a class is a lock
#define UPTIER_HOLDER UPTIER_THREAD_ATTRIBUTE(scoped_lockable)   // a class holds one
#define UPTIER_GUARDED_BY(...) UPTIER_THREAD_ATTRIBUTE(guarded_by(__VA_ARGS__))  // a member
#define UPTIER_POINTEE_GUARDED_BY(...) UPTIER_THREAD_ATTRIBUTE(pt_guarded_by(__VA_ARGS__))
#define UPTIER_REQUIRES(...) \
  UPTIER_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))  // held by the caller
#define UPTIER_EXCLUDES(...) UPTIER_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))  // not held by it
#define UPTIER_ACQUIRE(...) UPTIER_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define UPTIER_RELEASE(...) UPTIER_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define UPTIER_TRY_ACQUIRE(...) UPTIER_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define UPTIER_ACQUIRED_BEFORE(...) UPTIER_THREAD_ATTRIBUTE(acquired_before(__VA_ARGS__))
#define UPTIER_RETURNS_LOCK(x) UPTIER_THREAD_ATTRIBUTE(lock_returned(x))
// After the call the lock counts as held: for code that the check cannot follow.
#define UPTIER_ASSERTS_HELD(...) UPTIER_THREAD_ATTRIBUTE(assert_capability(__VA_ARGS__))
// The function is not checked. Say why beside each use.
#define UPTIER_UNCHECKED UPTIER_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace uptier {

// A lock of type L that the check can follow. L has lock(), unlock() and try_lock().
template <class L>
class UPTIER_LOCK CheckedLock {
 public:
  void lock() UPTIER_ACQUIRE() { lock_.lock(); }
  void unlock() UPTIER_RELEASE() { lock_.unlock(); }
  bool try_lock() UPTIER_TRY_ACQUIRE(true) { return lock_.try_lock(); }
  // Tells the check that the caller holds the lock. It does nothing.
  void known_held() const UPTIER_ASSERTS_HELD() {}

 private:
  L lock_;
};

// Holds a lock for a scope. It may be released and taken again in between.
template <class L>
class UPTIER_HOLDER Held {
 public:
  explicit Held(L& lock) UPTIER_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() UPTIER_RELEASE() {
    if (held_) lock_.unlock();
  }

  void lock() UPTIER_ACQUIRE() {
    lock_.lock();
    held_ = true;
  }
  void unlock() UPTIER_RELEASE() {
    held_ = false;
    lock_.unlock();
  }

 private:
  L& lock_;
  bool held_ = true;
};

}  // namespace uptier
