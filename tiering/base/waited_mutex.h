// A mutex that says whether threads wait for it. One that takes it again and again can then let others
// have it: a mutex given up and taken again goes to who is awake.
#pragma once
#include <atomic>
#include <mutex>
#include <thread>

namespace uptier::tiering {

class WaitedMutex {
 public:
  void lock() {
    if (mutex_.try_lock()) return;
    waiting_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

  // Lets those have it who wait for it now, within reason. The caller does not hold it.
  void give_way() const {
    for (int i = 0; i < 1000 && waiting_.load(std::memory_order_relaxed) != 0; ++i) {
      std::this_thread::yield();
    }
  }

 private:
  std::mutex mutex_;
  std::atomic<int> waiting_{0};  // threads in lock()
};

}  // namespace uptier::tiering
