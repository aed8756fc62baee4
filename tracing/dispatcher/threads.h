// threads.h: which callbacks run on which thread, so that one that was unsubscribed is waited for.
//
//   notifying thread                          unsubscribing thread
//     active = subscription  (relaxed)          alive = false
//     compiler barrier                          membarrier: a barrier on every thread
//     alive?  -> call                           wait until no other thread's `active` is it
//     active = null          (release)
//
// The barrier on the notifying side costs nothing; the other side pays for both. So either the
// notifying thread sees that the subscription is dead, or the other one sees that it is active.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace uptier::tracing {

struct Subscription;

// What one thread is at. `visit` is odd while it reads a list of subscriptions: what was taken from
// a list is freed when each thread that was reading then has gone on.
struct alignas(64) Slot {
  static constexpr size_t kDepth = 15;  // notifications within callbacks within ...

  std::atomic<uint64_t> visit = 0;
  std::array<std::atomic<const Subscription*>, kDepth> active{};
  std::atomic<bool> taken = false;
  uint32_t depth = 0;  // of the owner alone
};

class Threads {
 public:
  static constexpr size_t kSlots = 4096;

  Threads();
  // No thread may be notifying any more.
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Returns the calling thread's slot; null when all are taken. The first call of a thread takes
  // one, which costs a search; it is given back when the thread ends.
  Slot* mine() noexcept;

  // Returns when no other thread runs this subscription. It must be dead by now.
  void wait_for(const Subscription* s) noexcept;

  // What each thread was reading, for has_gone_on.
  using Moment = std::vector<uint64_t>;
  // Throws std::bad_alloc.
  Moment now();
  // Whether each thread that was reading at that moment has stopped since.
  bool has_gone_on(const Moment& m) const noexcept;

  // A barrier on every thread that runs.
  void barrier() noexcept;
  // The light half of it, for notifying threads.
  void light_barrier() const noexcept {
    if (has_membarrier_) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      full_fence();
    }
  }

 private:
  // ThreadSanitizer knows no fences.
  static void full_fence() noexcept {
#if defined(__SANITIZE_THREAD__)
    static std::atomic<uint32_t> word = 0;
    word.fetch_add(1, std::memory_order_seq_cst);
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }
  Slot* take() noexcept;

  std::array<Slot, kSlots> slots_;
  std::atomic<uint32_t> used_ = 0;  // slots from here on were never taken
  const uint64_t serial_;
  const bool has_membarrier_;
  pthread_key_t exit_key_;
};

}  // namespace uptier::tracing
