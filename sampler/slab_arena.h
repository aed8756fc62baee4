// SlabArena: the counters of one thread, allocated from one reservation.
//
// A slab is given back when its method is removed for good, and is then reused for another one of
// the same size class: whole cache lines, and beyond kExact lines four classes per power of two, so
// that later slabs fit. Free slabs are in one list per size class:
//
//   give   pushes; any thread, but one at a time
//   take   pops; the owner only, so the head it has read cannot be popped and pushed again meanwhile
//
//   Thread: take(): the owner. It neither allocates nor locks, so slow paths may call it.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <memory>

#include "sampler/reservation.h"

namespace uptier::sampler {

class SlabArena {
 public:
  static Result<SlabArena> create(size_t bytes) {
    Result<Reservation> r = Reservation::create_closed(bytes, "slab arena");
    if (!r) return r.error();
    SlabArena a;
    a.memory_ = std::move(*r);
    a.free_ = std::make_unique<Lists>();
    return a;
  }

  // Returns `words` zeroed 8-byte counters on cache lines of their own, or null if there is no
  // space.
  uint64_t* take(uint32_t words) noexcept {
    assert(words != 0);
    uint64_t lines = lines_of(words);
    if (uint64_t* again = pop((*free_)[class_of(lines)])) return again;
    size_t bytes = bytes_at(used_, lines);
    if (bytes > memory_.size() - used_ || !memory_.open(used_ + bytes)) return nullptr;
    auto* p = static_cast<char*>(memory_.data()) + used_;
    assert(used_ + bytes <= memory_.size() && used_ % kLine == 0);
    used_ += bytes;
    return reinterpret_cast<uint64_t*>(p);
  }

  // Takes back a slab of `words` words that take() has returned and that is no longer used.
  void give(uint64_t* slab, uint32_t words) noexcept {
    uint64_t lines = lines_of(words);
    auto at =
        static_cast<size_t>(reinterpret_cast<char*>(slab) - static_cast<char*>(memory_.data()));
    assert(at % kLine == 0 && at < memory_.size());  // take() has returned it
    // The last slab of the reservation may be smaller than its size class, so it cannot be reused.
    if (bytes_at(at, lines) < class_lines(lines) * kLine) return;
    std::memset(slab, 0, class_lines(lines) * kLine);
    std::atomic<uint64_t*>& head = (*free_)[class_of(lines)];
    uint64_t* next = head.load(std::memory_order_relaxed);
    do slab[0] = reinterpret_cast<uintptr_t>(next);
    // Release pairs with pop(): it sees the zeros and the link.
    while (!head.compare_exchange_weak(next, slab, std::memory_order_release,
                                       std::memory_order_relaxed));
  }

  // Returns how many bytes of the reservation were ever used.
  size_t used() const { return used_; }

 private:
  static constexpr uint64_t kLine = 64, kExact = 8;
  // A slab has at most 2^32 words, 2^29 lines.
  using Lists = std::array<std::atomic<uint64_t*>, 4 * 30>;

  static uint64_t lines_of(uint32_t words) { return (uint64_t{words} + 7) / 8; }
  // Rounds up to the next size class.
  static uint64_t class_lines(uint64_t lines) {
    if (lines <= kExact) return lines;
    uint64_t step = std::bit_floor(lines - 1) / 4;
    return (lines + step - 1) / step * step;
  }
  static size_t class_of(uint64_t lines) {
    if (lines <= kExact) return lines;
    uint64_t rounded = class_lines(lines);
    uint64_t low = std::bit_floor(rounded);
    return static_cast<size_t>(4 * (std::bit_width(low) - 1) + (rounded - low) / (low / 4));
  }
  // Returns the bytes of a slab that begins at `offset`: its size class, or, if that does not fit
  // any more, just the lines it needs.
  size_t bytes_at(size_t offset, uint64_t lines) const {
    assert(offset <= memory_.size());
    size_t rounded = class_lines(lines) * kLine;
    return rounded <= memory_.size() - offset ? rounded : lines * kLine;
  }
  static uint64_t* pop(std::atomic<uint64_t*>& head) noexcept {
    uint64_t* first = head.load(std::memory_order_acquire);
    while (first != nullptr) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      auto* next = reinterpret_cast<uint64_t*>(static_cast<uintptr_t>(first[0]));
      if (head.compare_exchange_weak(first, next, std::memory_order_acquire)) {
        first[0] = 0;
        return first;
      }
    }
    return nullptr;
  }

  Reservation memory_;
  size_t used_ = 0;
  std::unique_ptr<Lists> free_;
};

}  // namespace uptier::sampler
