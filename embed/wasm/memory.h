// memory.h: a linear memory.
//
// Guarded: 8 GiB and a slack are reserved without access, and growing only allows access to more of
// them. An index and an offset of 32 bits each cannot point past the reservation, so code compares
// nothing: an access outside faults, and the runtime makes the fault a trap. The page before the
// memory's first is reserved as well, and page 65,535 never allowed (`kMemFenced`), but where the
// limits of a memory say that it wants all 65,536 (Bounds::kUnfenced). Where the reservation is
// refused (or not wanted) the memory is allocated as large as it is, may move when it grows, and code
// compares every access with its size.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "embed/wasm/module.h"
#include "embed/wasm/types.h"
#include "embed/wasm/vmctx.h"
#include "uptier/result.h"

namespace uptier::wasm {

inline constexpr uint64_t kPageSize = 65536;
inline constexpr uint32_t kMaxPages = 65536;

// Returns the guards of a memory with these limits, if address space is not refused: they depend on its
// initial and its largest size.
Bounds bounds_of(const Limits& limits, uint32_t max_pages, Bounds wanted);

// Limits the bytes of all memories of an engine together. Thread: any.
class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t bytes) : left_(bytes) {}
  // Returns false, and takes nothing, where there is less left.
  bool take(uint64_t bytes) noexcept {
    uint64_t left = left_.load(std::memory_order_relaxed);
    do {
      if (left < bytes) return false;
    } while (!left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed));
    return true;
  }
  void give_back(uint64_t bytes) noexcept { left_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> left_;
};

// Thread: one at a time, with the store it belongs to.
class Memory {
 public:
  // Creates a memory of `limits.min` zeroed pages that may grow to `limits.max`, and to `max_pages`
  // at most. `wanted` is kGuarded unless bounds checks are requested; `bounds` returns the actual
  // kind. Its pages are taken from `budget`, which must outlive it; null: there is no limit.
  // Errors: kResourceExhausted.
  static Result<std::unique_ptr<Memory>> create(const Limits& limits, uint32_t max_pages,
                                                Bounds wanted, MemoryBudget* budget = nullptr);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Bounds bounds() const { return bounds_; }
  uint32_t pages() const { return record_.pages; }
  std::span<uint8_t> bytes() const { return {record_.base, static_cast<size_t>(record_.size)}; }
  // Returns the declared maximum; the size at creation is not kept, as linking uses the current
  // one.
  const std::optional<uint64_t>& max() const { return max_; }

  // Grows by `delta` zeroed pages. Returns the old size in pages, or -1 (and changes nothing) past
  // the maximum or the budget, or when the system refuses. Moves an unguarded memory.
  int32_t grow(uint32_t delta) noexcept;

  // Returns whether [address, address + count) lies inside.
  bool contains(uint64_t address, uint64_t count) const {
    return address <= record_.size && count <= record_.size - address;
  }

  MemoryRecord* record() { return &record_; }

 private:
  Memory() = default;
  bool reserve();
  bool resize(uint64_t size) noexcept;

  MemoryRecord record_;
  MemoryBudget* budget_ = nullptr;
  Bounds bounds_ = Bounds::kGuarded;
  uint64_t mapped_ = 0;  // bytes of address space that are ours
  uint32_t page_limit_ = kMaxPages;
  std::optional<uint64_t> max_;
};

}  // namespace uptier::wasm
