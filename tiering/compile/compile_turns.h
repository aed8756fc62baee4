// CompileTurns: decides which thread describes and compiles which method.
//
// One thread at a time has the turn of a method. `build` may run guest code, and so reach a method
// that is being described right now: by this thread, further up, or by another one, which in turn
// may be waiting for a method that this thread describes.
//
// Law: threads never wait in a circle. A thread that would close a circle is refused its turn at
// once, so one thread of the circle is refused and all others proceed.
//
// There are as many turns as compiling threads, and methods store nothing for it. Code that drops
// frames without running their destructors must call forget_dropped.
//
//   Thread: any; a CompileTurn belongs to its thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "uptier/thread_safety.h"

namespace uptier::tiering {

struct Method;

class CompileTurns {
 public:
  CompileTurns() { turns_.reserve(kUsual); }

  // Says whether the calling thread has a turn, and so is inside a `build` or compiles.
  bool any_here() const noexcept;
  // A trap has dropped the calling thread's frames below `frame`, including their turns: `build`
  // has called an entry, which trapped. Cost: a load if no thread has a turn.
  void forget_dropped(const void* frame) noexcept;

 private:
  friend class CompileTurn;
  static constexpr size_t kUsual = 64;

  struct Turn {
    const void* owner;  // the CompileTurn, on the thread's stack
    const Method* method;
    std::thread::id thread;
    bool waits;
  };

  const Turn* taken_for(const Method* m) const UPTIER_REQUIRES(mutex_);
  bool waits_for(const Turn& has, std::thread::id thread) const UPTIER_REQUIRES(mutex_);
  void count() UPTIER_REQUIRES(mutex_) { count_.store(turns_.size(), std::memory_order_relaxed); }

  mutable CheckedLock<std::mutex> mutex_;  // a leaf
  std::condition_variable_any given_back_;
  std::vector<Turn> turns_ UPTIER_GUARDED_BY(mutex_);
  std::atomic<size_t> count_{0};  // size of turns_, for a check without the mutex
};

// The calling thread's turn with a method, for a scope; it may be refused.
class CompileTurn {
 public:
  enum class If : uint8_t { kEver, kFree };
  // Waits for the turn. It is refused with kFree if another thread has it, else if the wait would
  // never end.
  CompileTurn(CompileTurns& all, const Method& m, If wait = If::kEver);
  ~CompileTurn();
  CompileTurn(const CompileTurn&) = delete;
  CompileTurn& operator=(const CompileTurn&) = delete;

  explicit operator bool() const { return taken_; }

 private:
  CompileTurns& all_;
  bool taken_ = false;
};

}  // namespace uptier::tiering
