// CompileTurns: which thread describes and compiles which method.
//
// A method is one thread's at a time. `build` may run guest code, and so come to a method that is
// described just now: by this thread, further up, or by another one, which may wait for what this
// thread describes.
//
// Law: nobody waits for who waits for him. Whoever would close such a circle is refused his turn at
// once, so of those in it one is refused and all others go on.
//
// There are as many turns as threads compile, and a method has nothing of it. Code that takes frames
// away without running their destructors says so (forget_dropped).
//
//   Thread: any; a CompileTurn is its thread's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace uptier::tiering {

struct Method;

class CompileTurns {
 public:
  CompileTurns() { turns_.reserve(kUsual); }

  // Returns whether the calling thread has a turn, and so is in somebody's `build` or compiles.
  bool any_here() const noexcept;
  // A trap has dropped the calling thread's frames below `frame`, and with them turns that it had
  // there: `build` has called an entry, which trapped. Cost: a load where nobody has a turn.
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

  const Turn* taken_for(const Method* m) const;
  bool waits_for(const Turn& has, std::thread::id thread) const;
  void count() { count_.store(turns_.size(), std::memory_order_relaxed); }

  mutable std::mutex mutex_;  // guards what follows; a leaf
  std::condition_variable given_back_;
  std::vector<Turn> turns_;
  std::atomic<size_t> count_{0};  // of turns_, for a look without the mutex
};

// The calling thread's turn with a method, for a scope; or none.
class CompileTurn {
 public:
  enum class If : uint8_t { kEver, kFree };
  // Waits for it. Not given: with kFree, where another has it; else where the wait would never end.
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
