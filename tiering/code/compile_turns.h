// CompileTurns: which thread describes and compiles which method.
//
// A method is one thread's at a time. `build` may run guest code, and so come to a method that is
// described just now: by this thread, further up, or by another one, which may wait for what this
// thread describes.
//
// Law: nobody waits for who waits for him. Whoever would close such a circle is refused his turn at
// once, so of those in it one is refused and all others go on.
//
// Turns are records on the stacks of those who have them or wait for them: there are as many as
// threads compile, and a method has nothing of it.
//
//   Thread: any; a CompileTurn is its thread's.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace uptier::tiering {

struct Method;
class CompileTurn;

class CompileTurns {
 public:
  // Whether the calling thread has a turn, and so is in somebody's `build` or compiles.
  bool any_here() const noexcept;

 private:
  friend class CompileTurn;

  const CompileTurn* taken_for(const Method* m) const;
  bool waits_for(const CompileTurn& has, std::thread::id thread) const;

  mutable std::mutex mutex_;  // guards what follows, and the records; a leaf
  std::condition_variable given_back_;
  CompileTurn* first_ = nullptr;
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

  explicit operator bool() const { return state_ == State::kTaken; }

 private:
  friend class CompileTurns;
  enum class State : uint8_t { kWaits, kTaken, kRefused };

  CompileTurns& all_;
  const Method* const method_;
  const std::thread::id thread_ = std::this_thread::get_id();
  State state_ = State::kWaits;
  CompileTurn* next_ = nullptr;
};

}  // namespace uptier::tiering
