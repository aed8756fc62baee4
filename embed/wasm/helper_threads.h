// HelperThreads: threads that help the calling thread with its work, if the system has any.
//
// Law: if a thread is refused, the work is done without it. std::thread would throw an exception.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace uptier::wasm {

class HelperThreads {
 public:
  // Has up to `most` threads call `work`, which outlives this, at the same time.
  HelperThreads(const std::function<void()>& work, size_t most) {
    threads_.reserve(most);
    auto run = [](void* it) -> void* {
      (*static_cast<const std::function<void()>*>(it))();
      return nullptr;
    };
    for (pthread_t t; threads_.size() < most;) {
      if (::pthread_create(&t, nullptr, run, const_cast<std::function<void()>*>(&work)) != 0) break;
      threads_.push_back(t);
    }
  }
  // Waits for them.
  ~HelperThreads() {
    for (pthread_t t : threads_) ::pthread_join(t, nullptr);
  }
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;

 private:
  std::vector<pthread_t> threads_;
};

}  // namespace uptier::wasm
