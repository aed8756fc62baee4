#include "sampler/log_ring.h"

#include <bit>
#include <cassert>

namespace uptier::sampler {

LogRing::LogRing(Reservation memory, uint64_t records)
    : memory_(std::move(memory)), mask_(records - 1) {}

Result<std::unique_ptr<LogRing>> LogRing::create(uint32_t records) {
  uint64_t count = std::bit_ceil(uint64_t{records < 2 ? 2 : records});
  Result<Reservation> r = Reservation::create(count * sizeof(Slot), "log ring");
  if (!r) return r.error();
  assert(count >= 2 && r->size() >= count * sizeof(Slot));
  return std::unique_ptr<LogRing>(new LogRing(std::move(*r), count));
}

void LogRing::read(std::vector<LogRecord>& out, uint64_t most) {
  uint64_t tail = tail_.load(std::memory_order_relaxed);
  while (most > 0) {
    if (tail == head_.load(std::memory_order_acquire)) return;  // pairs with push
    assert(tail < head_.load(std::memory_order_relaxed));
    const Slot& s = slot(tail);
    uint64_t place = s.place.load(std::memory_order_relaxed);
    LogRecord r{static_cast<uint32_t>(place >> 32), static_cast<uint32_t>(place),
                static_cast<uint32_t>(s.tag.load(std::memory_order_relaxed)),
                s.value.load(std::memory_order_relaxed), s.cycles.load(std::memory_order_relaxed)};
    // Releases the slot: the copy above is done before push may write to it. A failure means that
    // push has taken the record; it loads the tail that push has left.
    if (!tail_.compare_exchange_strong(tail, tail + 1, std::memory_order_acq_rel,
                                       std::memory_order_relaxed)) {
      continue;
    }
    out.push_back(r);
    ++tail;
    --most;
  }
}

}  // namespace uptier::sampler
