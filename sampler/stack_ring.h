// StackRing: the stack samples of one thread that nobody has read yet.
//
// A record takes three words and one for each frame. A full ring drops the new record and counts it, with
// its weight: pushed = read + what is still there, and asked = pushed + dropped.
//
//   Thread: push by the owner, in its signal handler (no lock, no allocation, no libc); read by one thread
//   at a time, any.
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
  // Takes the oldest record. Returns false when there is none.
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
  // Positions in words; they only grow. head_ is released by push after the record's words and acquired
  // by pop before it copies them; tail_ the other way round.
  alignas(64) std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> dropped_{0};
  std::atomic<uint64_t> dropped_ns_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
};

}  // namespace uptier::sampler
