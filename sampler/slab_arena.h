// SlabArena: the counters of one thread, taken from one reservation, never given back singly.
//
//   Thread: its owner's. take() neither allocates nor locks, so slow paths may call it.
#pragma once

#include <cstdint>

#include "sampler/reservation.h"

namespace uptier::sampler {

class SlabArena {
 public:
  static Result<SlabArena> create(size_t bytes) {
    Result<Reservation> r = Reservation::create(bytes, "slab arena");
    if (!r) return r.error();
    SlabArena a;
    a.memory_ = std::move(*r);
    return a;
  }

  // Returns `words` zeroed 8-byte counters on cache lines of their own, or null when spent.
  uint64_t* take(uint32_t words) noexcept {
    size_t bytes = (size_t{words} * 8 + 63) & ~size_t{63};
    if (bytes > memory_.size() - used_) return nullptr;
    auto* p = static_cast<char*>(memory_.data()) + used_;
    used_ += bytes;
    return reinterpret_cast<uint64_t*>(p);
  }

 private:
  Reservation memory_;
  size_t used_ = 0;
};

}  // namespace uptier::sampler
