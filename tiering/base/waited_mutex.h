// A mutex that knows whether threads are waiting for it. A thread that takes it again and again can
// let others have it: an ordinary mutex would go back to the thread that is running.
#pragma once
#include <atomic>
#include <cassert>
#include <mutex>
#include <thread>

namespace uptier::tiering {

class WaitedMutex {
 public:
  void lock() {
    assert(!held());  // it is not recursive
    if (!mutex_.try_lock()) {
      waiting_.fetch_add(1, std::memory_order_relaxed);
      mutex_.lock();
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
    note_holder(std::this_thread::get_id());
  }
  bool try_lock() {
    bool taken = mutex_.try_lock();
    if (taken) note_holder(std::this_thread::get_id());
    return taken;
  }
  void unlock() {
    assert(held());
    note_holder({});
    mutex_.unlock();
  }

#ifndef NDEBUG
  // Returns whether the calling thread holds it. Only for asserts.
  bool held() const {
    return holder_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
#endif

  // Lets threads that are waiting now have the mutex, within limits. The caller does not hold it.
  void give_way() const {
    assert(!held());
    for (int i = 0; i < 1000 && waiting_.load(std::memory_order_relaxed) != 0; ++i) {
      std::this_thread::yield();
    }
  }

 private:
#ifndef NDEBUG
  void note_holder(std::thread::id id) { holder_.store(id, std::memory_order_relaxed); }
  std::atomic<std::thread::id> holder_{};
#else
  void note_holder(std::thread::id) {}
#endif

  std::mutex mutex_;
  std::atomic<int> waiting_{0};  // threads in lock()
};

}  // namespace uptier::tiering
