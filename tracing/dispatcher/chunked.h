// chunked.h: a table that only grows; its entries are read without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace uptier::tracing {

// Entries have indices from 0 in the order in which they were added. They never move.
//
// Thread: add() under the owner's lock; find() any, at any time: the release store of the size
// pairs with its acquire load, so a thread that sees an index sees the entry.
template <typename T>
class Chunked {
 public:
  // Returns the entry's index. Throws std::bad_alloc, and then nothing was added.
  uint32_t add(T value) {
    const uint32_t index = size_.load(std::memory_order_relaxed);
    if (index == kChunks * kPerChunk) throw std::bad_alloc();
    std::unique_ptr<T[]>& chunk = chunks_[index / kPerChunk];
    if (chunk == nullptr) chunk = std::make_unique<T[]>(kPerChunk);
    chunk[index % kPerChunk] = std::move(value);
    size_.store(index + 1, std::memory_order_release);
    return index;
  }
  // Returns null if there is no such index.
  const T* find(uint64_t index) const noexcept {
    if (index >= size_.load(std::memory_order_acquire)) return nullptr;
    return &chunks_[index / kPerChunk][index % kPerChunk];
  }
  uint32_t size() const noexcept { return size_.load(std::memory_order_acquire); }

 private:
  static constexpr uint32_t kPerChunk = 1024;
  static constexpr uint32_t kChunks = 16384;  // 16 M entries

  std::array<std::unique_ptr<T[]>, kChunks> chunks_;
  std::atomic<uint32_t> size_ = 0;
};

}  // namespace uptier::tracing
