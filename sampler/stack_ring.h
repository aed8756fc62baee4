// StackRing: the unread stack samples of one thread.
//
// A record takes three words, plus one for each frame. A full ring drops the new record and counts
// it and its weight: pushed = read + unread, and asked = pushed + dropped.
//
//   Thread: push: the owner, in its signal handler (no lock, no allocation, no libc). read: any, one thread at a
//   time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "sampler/reservation.h"
#include "sampler/stack_record.h"

namespace uptier::sampler {

class StackRing {
 public:
  // `bytes` is rounded up to a power of two. Errors: kResourceExhausted.
  static Result<std::unique_ptr<StackRing>> create(uint64_t bytes);

  // Returns whether there was room.
  bool push(const StackRecord& r) noexcept;
  // Takes the oldest record. Returns false if there is none.
  bool pop(StackRecord& r) noexcept;

  uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  uint64_t dropped_ns() const noexcept { return dropped_ns_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kHeaderWords = 3;
  StackRing(Reservation memory, uint64_t words) : memory_(std::move(memory)), mask_(words - 1) {}
  uint64_t& word(uint64_t position) const noexcept {
    return static_cast<uint64_t*>(memory_.data())[position & mask_];
  }

  Reservation memory_;
  uint64_t mask_;
  // Positions are in words; they only grow. push releases head_ after the words of a record, and
  // pop acquires it before it copies them; the reverse holds for tail_.
  alignas(64) std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> dropped_{0};
  std::atomic<uint64_t> dropped_ns_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
};

}  // namespace uptier::sampler
