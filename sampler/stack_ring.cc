#include "sampler/stack_ring.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace uptier::sampler {

Result<std::unique_ptr<StackRing>> StackRing::create(uint64_t bytes) {
  constexpr uint64_t kLeast = 8 * (kHeaderWords + StackRecord::kMostFrames);
  uint64_t rounded = std::bit_ceil(std::max(bytes, kLeast));
  Result<Reservation> memory = Reservation::create(rounded, "stack samples");
  if (!memory) return memory.error();
  return std::unique_ptr<StackRing>(new StackRing(std::move(*memory), rounded / 8));
}

// Only the owner writes these counters; others read whole words.
bool StackRing::push(const StackRecord& r) noexcept {
  uint64_t head = head_.load(std::memory_order_relaxed);
  uint64_t used = head - tail_.load(std::memory_order_acquire);  // pairs with pop()
  assert(used <= mask_ + 1 && r.count <= StackRecord::kMostFrames);
  if (mask_ + 1 - used < kHeaderWords + r.count) {
    dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    dropped_ns_.store(dropped_ns_.load(std::memory_order_relaxed) + r.weight_ns,
                      std::memory_order_relaxed);
    return false;
  }
  word(head) = static_cast<uint64_t>(r.leaf) | static_cast<uint64_t>(r.gap) << 8 |
               static_cast<uint64_t>(r.count) << 16;
  word(head + 1) = r.weight_ns;
  word(head + 2) = r.cycles;
  for (uint32_t i = 0; i < r.count; ++i) word(head + kHeaderWords + i) = r.frames[i];
  head_.store(head + kHeaderWords + r.count, std::memory_order_release);  // pairs with pop()
  return true;
}

bool StackRing::pop(StackRecord& r) noexcept {
  uint64_t tail = tail_.load(std::memory_order_relaxed);
  if (tail == head_.load(std::memory_order_acquire)) return false;  // pairs with push()
  uint64_t first = word(tail);
  r.leaf = static_cast<SampleLeaf>(first & 0xff);
  r.gap = static_cast<SampleGap>(first >> 8 & 0xff);
  r.count = static_cast<uint16_t>(first >> 16);
  r.weight_ns = word(tail + 1);
  r.cycles = word(tail + 2);
  for (uint32_t i = 0; i < r.count; ++i) r.frames[i] = word(tail + kHeaderWords + i);
  tail_.store(tail + kHeaderWords + r.count, std::memory_order_release);  // pairs with push()
  return true;
}

}  // namespace uptier::sampler
