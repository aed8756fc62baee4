// arena.h: memory that is used again when nothing refers to it any more.
//
//   block   32 KiB of the arena, cut into chunks of one size; a chunk larger than kSmall has blocks
//           to itself
//   live    bits beside the blocks, one for each chunk that was handed out and not found dead since
//   run     neighbouring chunks that are free: allocating takes one after the other off its front
//
// Mark and sweep, and nothing moves. A collection lets the owner mark what can be reached, and then
// live = marks: that is all of sweeping, and no dead memory is touched before it is used again. It
// happens within `allocate` and nowhere else, once as much was handed out as was reached at the
// last one, and when the arena is full.
//
//   Thread: one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace calc {

// What a chunk is: an Object, or words of which each may be a Val.
enum class Holds : uint8_t { kObject, kValues };

struct Block {
  static constexpr size_t kBytes = 32 << 10, kGranule = 16;
  using Bits = std::array<uint64_t, kBytes / kGranule / 64>;  // at the granule where a chunk begins

  size_t chunk_bytes = 0;  // 0: the block is free
  uint32_t first = 0;      // of a chunk with blocks to itself: where it begins
  Holds holds = Holds::kObject;
  Block* next = nullptr;  // with free chunks of the size, for all that is known
  Bits live = {}, marks = {};
};

class Arena {
 public:
  static constexpr size_t kSmall = Block::kBytes / 2;

  explicit Arena(size_t limit_bytes);
  virtual ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  size_t limit() const { return limit_; }
  // For tests: collects at every n-th allocation, and overwrites what was found dead.
  void collect_every(uint64_t n) { every_ = n; }

  struct Chunk {
    void* start = nullptr;  // null: none
    size_t bytes = 0;
    Holds holds = Holds::kObject;
  };
  // Returns the chunk in use that an address lies in; any word will do.
  Chunk find(uintptr_t address) const;
  // Marks a chunk by its start. Returns whether it was not marked before.
  bool mark(const void* start) {
    size_t at = static_cast<size_t>(static_cast<const char*>(start) - base_);
    Block& b = blocks_[at / Block::kBytes];
    size_t bit = at % Block::kBytes / Block::kGranule;
    uint64_t mask = uint64_t{1} << bit % 64;
    if ((b.marks[bit / 64] & mask) != 0) return false;
    b.marks[bit / 64] |= mask;
    reached_ += b.chunk_bytes;
    return true;
  }

  struct Counts {
    uint64_t collections = 0, bytes_found_dead = 0, most_bytes_in_use = 0;
  };
  Counts counts() const;

 protected:
  // Returns memory that holds anything, or null when the limit is reached; may collect.
  void* allocate(size_t bytes, Holds holds) {
    if (bytes <= kSmall) [[likely]] {
      Run& r = runs_[static_cast<size_t>(holds)][size_class(bytes)];
      char* p = r.next;
      if (p != r.end) {
        r.next = p + r.bytes;
        return p;
      }
    }
    return allocate_slow(bytes, holds);
  }

 private:
  struct Run {
    char *next = nullptr, *end = nullptr;
    uint32_t bytes = 0;
    Block* block = nullptr;      // that it lies in
    Block* available = nullptr;  // those to look at next
  };
  static constexpr size_t kSizes = 32;
  static constexpr std::array<uint32_t, kSizes> kSizeOf = [] {
    std::array<uint32_t, kSizes> sizes = {};
    size_t n = 0;
    for (uint32_t s = 16; s <= 128; s += 16) sizes[n++] = s;
    for (uint32_t s = 128; s < 2048; s *= 2) {
      for (uint32_t k = 5; k <= 8; ++k) sizes[n++] = s / 4 * k;
    }
    for (uint32_t parts : {12, 10, 8, 6, 5, 4, 3, 2}) {
      sizes[n++] = static_cast<uint32_t>(Block::kBytes / parts / 16 * 16);
    }
    return sizes;
  }();
  static constexpr auto kClassOf = [] {
    std::array<uint8_t, kSmall / 16 + 1> classes = {};
    for (size_t k = 0, c = 0; k < classes.size(); ++k) {
      if (k * 16 > kSizeOf[c]) ++c;
      classes[k] = static_cast<uint8_t>(c);
    }
    return classes;
  }();
  static size_t size_class(size_t bytes) { return kClassOf[(bytes + 15) / 16]; }

  // Calls `mark` for all that can be reached.
  virtual void mark_reached() = 0;

  void* allocate_slow(size_t bytes, Holds holds);
  void* take(size_t bytes, Holds holds);
  bool next_run(Run& r);
  Block* take_blocks(uint32_t count);
  bool extend(uint32_t count);
  void collect();
  void close_runs();
  void sweep();
  void sweep_chunks(Block& b);
  void sweep_large(Block& b);
  void free_blocks(Block& first, uint32_t count);

  uint32_t index_of(const Block& b) const { return static_cast<uint32_t>(&b - blocks_); }
  char* start_of(const Block& b) const { return base_ + index_of(b) * Block::kBytes; }
  Run& run_of(const Block& b) {
    return runs_[static_cast<size_t>(b.holds)][size_class(b.chunk_bytes)];
  }

  Run runs_[2][kSizes];
  size_t limit_;
  char* base_ = nullptr;
  Block* blocks_ = nullptr;   // room for all, taken as they are used
  uint32_t begun_ = 0;        // blocks that were ever in use
  uint32_t free_ = 0;         // of these
  uint32_t lowest_free_ = 0;  // none is below
  uint32_t ready_ = 0;        // blocks whose pages are there
  size_t reached_ = 0;        // bytes of marked chunks
  size_t since_ = 0;          // bytes handed out since
  uint64_t every_ = 0, allocations_ = 0;
  Counts counts_;
};

}  // namespace calc
