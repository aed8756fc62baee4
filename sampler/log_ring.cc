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

// The acquires pair with push: see head_.
LogRecord LogRing::record_of(const Slot& s) {
  const uint64_t place = s.place.load(std::memory_order_acquire);
  return {static_cast<uint32_t>(place >> 32), static_cast<uint32_t>(place),
          static_cast<uint32_t>(s.tag.load(std::memory_order_acquire)),
          s.value.load(std::memory_order_acquire), s.cycles.load(std::memory_order_acquire)};
}

void LogRing::peek(std::vector<LogRecord>& out) const {
  uint64_t at = tail_.load(std::memory_order_acquire);  // pairs with push
  const uint64_t head = head_.load(std::memory_order_acquire);
  while (at < head) {
    const LogRecord r = record_of(slot(at));
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail > at) {
      at = tail;  // push has taken the record
      continue;
    }
    out.push_back(r);
    ++at;
  }
}

void LogRing::read(std::vector<LogRecord>& out, uint64_t most) {
  uint64_t tail = tail_.load(std::memory_order_relaxed);
  while (most > 0) {
    if (tail == head_.load(std::memory_order_acquire)) return;  // pairs with push
    assert(tail < head_.load(std::memory_order_relaxed));
    const LogRecord r = record_of(slot(tail));
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
