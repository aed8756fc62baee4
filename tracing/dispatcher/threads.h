// threads.h: which callbacks run on which thread, so that unsubscribing can wait for them.
//
//   notifying thread                          unsubscribing thread
//     active = subscription  (relaxed)          alive = false
//     compiler barrier                          membarrier: a barrier on every thread
//     alive?  -> call                           wait until no other thread's `active` is it
//     active = null          (release)
//
// The barrier on the notifying side costs nothing; the other side pays for both. So either the
// notifying thread sees that the subscription is dead, or the other thread sees that it is active.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace uptier::tracing {

struct Subscription;

// The state of one thread. `visit` is odd while the thread reads a list of subscriptions. An entry
// removed from a list is freed when each thread that was reading at that time has gone on.
struct alignas(64) Slot {
  static constexpr size_t kDepth = 15;  // notifications within callbacks within ...

  std::atomic<uint64_t> visit = 0;
  std::array<std::atomic<const Subscription*>, kDepth> active{};
  std::atomic<bool> taken = false;
  uint32_t depth = 0;  // used by the owner only
};

class Threads {
 public:
  static constexpr size_t kSlots = 4096;

  Threads();
  // No thread may be notifying any more.
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Returns the calling thread's slot, or null if all are taken. A thread's first call takes a
  // slot, which costs a search; the slot is given back when the thread ends.
  Slot* mine() noexcept;

  // Waits until no other thread runs this subscription, which must be dead already.
  void wait_for(const Subscription* s) noexcept;

  // The visits that threads were on, for has_gone_on.
  using Moment = std::vector<uint64_t>;
  // Throws std::bad_alloc.
  Moment now();
  // Says whether each thread that was reading at that moment has finished since.
  bool has_gone_on(const Moment& m) const noexcept;

  // Puts a barrier on every running thread.
  void barrier() noexcept;
  // The light half of the barrier, for notifying threads.
  void light_barrier() const noexcept {
    if (has_membarrier_) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      full_fence();
    }
  }

 private:
  // ThreadSanitizer does not understand fences.
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
  std::atomic<uint32_t> used_ = 0;  // later slots were never taken
  const uint64_t serial_;
  const bool has_membarrier_;
  pthread_key_t exit_key_;
};

}  // namespace uptier::tracing
