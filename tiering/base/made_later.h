// MadeLater: a part of an object that most objects of its kind never need.
//
// Readers of a part that has not been made see a default T; a writer makes the part.
//
//   Thread: one writer at a time. Parts given to `put` may be read without a lock, since made() is an
//           acquire that pairs with its release; the result of `own` may be used by the writer only.
#pragma once

#include <atomic>
#include <cassert>
#include <memory>
#include <utility>

namespace uptier::tiering {

template <typename T>
class MadeLater {
 public:
  MadeLater() = default;
  MadeLater(const MadeLater&) = delete;
  MadeLater& operator=(const MadeLater&) = delete;
  ~MadeLater() { reset(); }

  const T& operator*() const {
    const T* it = made();
    return it != nullptr ? *it : fresh();
  }
  const T* operator->() const { return &**this; }

  // Returns the part, or null.
  T* made() const { return made_.load(std::memory_order_acquire); }
  // Returns the part, and makes it if necessary.
  T& own() { return made() != nullptr ? *made() : put(std::make_unique<T>()); }
  // Replaces the part by `it`; the old part is destroyed.
  T& put(T it) { return put(std::make_unique<T>(std::move(it))); }
  T& put(std::unique_ptr<T> it) {
    assert(it != nullptr);
    reset();
    made_.store(it.get(), std::memory_order_release);
    return *it.release();
  }
  void reset() { delete made_.exchange(nullptr, std::memory_order_relaxed); }
  // Makes the default value that readers see before the part is made: later readers cannot run out
  // of memory.
  static void make_fresh() { (void)fresh(); }

 private:
  static const T& fresh() {
    static const T kFresh = T();
    return kFresh;
  }

  std::atomic<T*> made_{nullptr};
};

}  // namespace uptier::tiering
