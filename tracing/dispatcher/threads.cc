#include "tracing/dispatcher/threads.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace uptier::tracing {
namespace {

// Initial-exec, so that a notification never allocates a thread's TLS block.
struct Mine {
  uint64_t owner = 0;  // the serial of the Threads that owns the slot
  Slot* slot = nullptr;
};
__attribute__((tls_model("initial-exec"))) thread_local Mine mine_;

void give_back(void* slot) {
  mine_ = {};
  static_cast<Slot*>(slot)->taken.store(false, std::memory_order_release);
}

std::atomic<uint64_t> serials = 0;

int membarrier(int command) { return static_cast<int>(::syscall(SYS_membarrier, command, 0, 0)); }

}  // namespace

Threads::Threads()
    : serial_(serials.fetch_add(1) + 1),
      has_membarrier_(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0) {
  ::pthread_key_create(&exit_key_, give_back);
}

Threads::~Threads() { ::pthread_key_delete(exit_key_); }

Slot* Threads::mine() noexcept { return mine_.owner == serial_ ? mine_.slot : take(); }

Slot* Threads::take() noexcept {
  for (size_t i = 0; i < kSlots; ++i) {
    bool taken = slots_[i].taken.load(std::memory_order_relaxed);
    if (taken || !slots_[i].taken.compare_exchange_strong(taken, true)) continue;
    uint32_t used = used_.load();
    while (used < i + 1 && !used_.compare_exchange_weak(used, static_cast<uint32_t>(i + 1))) {}
    mine_ = {serial_, &slots_[i]};
    ::pthread_setspecific(exit_key_, &slots_[i]);
    return &slots_[i];
  }
  return nullptr;
}

void Threads::barrier() noexcept {
  if (has_membarrier_) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  full_fence();
}

void Threads::wait_for(const Subscription* s) noexcept {
  barrier();
  const Slot* own = mine_.owner == serial_ ? mine_.slot : nullptr;
  const uint32_t used = used_.load();
  for (uint32_t i = 0; i < used; ++i) {
    if (&slots_[i] == own) continue;
    for (const auto& active : slots_[i].active) {
      for (uint32_t round = 0; active.load(std::memory_order_acquire) == s; ++round) {
        const timespec pause = {0, std::min<long>(1000L << std::min(round, 8u), 100000)};
        ::nanosleep(&pause, nullptr);
      }
    }
  }
}

Threads::Moment Threads::now() {
  Moment m(kSlots);
  barrier();
  m.resize(used_.load());  // a thread that takes a slot later sees everything published before
  for (size_t i = 0; i < m.size(); ++i) m[i] = slots_[i].visit.load(std::memory_order_acquire);
  return m;
}

bool Threads::has_gone_on(const Moment& m) const noexcept {
  for (size_t i = 0; i < m.size(); ++i) {
    const bool was_reading = (m[i] & 1) != 0;
    if (was_reading && slots_[i].visit.load(std::memory_order_acquire) == m[i]) return false;
  }
  return true;
}

}  // namespace uptier::tracing
