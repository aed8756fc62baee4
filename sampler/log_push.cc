// Compiled with -mgeneral-regs-only: see log_ring.h.
#include "sampler/context.h"
#include "sampler/log_ring.h"

namespace uptier::sampler {

void LogRing::push(const LogRecord& r, uint64_t* lost) noexcept {
  uint64_t head = head_.load(std::memory_order_relaxed);
  Slot& s = slot(head);
  uint64_t oldest = head - capacity();
  // Success pairs with read(): its copy of the record is done, or will be thrown away.
  if (head >= capacity() && tail_.load(std::memory_order_acquire) == oldest &&
      tail_.compare_exchange_strong(oldest, oldest + 1, std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
    ++*s.lost;
    lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // Released for peek(): see head_.
  s.place.store(uint64_t{r.method} << 32 | r.site, std::memory_order_release);
  s.tag.store(r.tag, std::memory_order_release);
  s.value.store(r.value, std::memory_order_release);
  s.cycles.store(r.cycles, std::memory_order_release);
  s.lost = lost;
  head_.store(head + 1, std::memory_order_release);  // pairs with read
}

extern "C" void uptier_probe_log(uint64_t* slab, const ProbeCall* call,
                                 ThreadContext* context) noexcept {
  uint64_t* words = call->words(slab);
  ++words[0];
  if (context->log == nullptr) {
    ++words[1];
    return;
  }
  LogRecord r{static_cast<uint32_t>(call->place >> 32), static_cast<uint32_t>(call->place),
              static_cast<uint32_t>(call->extra), call->value, __builtin_ia32_rdtsc()};
  context->log->push(r, words + 1);
}

}  // namespace uptier::sampler
