// MadeLater: a part of an object that most objects of its kind never come to have.
//
// A reader of a part that has not been made sees a fresh T; a writer makes the part.
//
//   Thread: one writer at a time. What `put` was given may be read without a lock, as made() is an
//           acquire that pairs with its release; what `own` hands out belongs to its writer.
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

  // Returns it, or null.
  T* made() const { return made_.load(std::memory_order_acquire); }
  // Returns it, making it if need be.
  T& own() { return made() != nullptr ? *made() : put(std::make_unique<T>()); }
  // Puts `it` in the place of the one before, which goes.
  T& put(T it) { return put(std::make_unique<T>(std::move(it))); }
  T& put(std::unique_ptr<T> it) {
    assert(it != nullptr);
    reset();
    made_.store(it.get(), std::memory_order_release);
    return *it.release();
  }
  void reset() { delete made_.exchange(nullptr, std::memory_order_relaxed); }
  // Makes what readers of one that has not been made find: from here on they are not refused it.
  static void make_fresh() { (void)fresh(); }

 private:
  static const T& fresh() {
    static const T kFresh = T();
    return kFresh;
  }

  std::atomic<T*> made_{nullptr};
};

}  // namespace uptier::tiering
