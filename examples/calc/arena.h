// arena.h: memory that is used again when nothing refers to it any more.
//
//   block   32 KiB of the arena, cut into chunks of one size; a chunk larger than kSmall has blocks
//           to itself
//   marks   bits beside the block, one for each chunk that the last collection has reached: all
//           others are free, but for those that allocating has passed since
//
// Mark and sweep. A word counts as a reference if it is the address of any byte of a chunk, with the
// tag of a Val or without. The collector looks at all words of the owner's roots, of chunks that
// were reached, of registers, and of the native stack, where the frames of compiled code lie among
// those of C++. So nobody describes objects or frames, and nothing may move. The chapter
// "A garbage collector" of docs/embedding.md lists the promises that compiled code makes for that.
//
// It happens within `allocate` and nowhere else, once as much was handed out as was reached at the
// last one, and when the arena is full.
//
//   Thread: one.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace calc {

class Arena {
 public:
  explicit Arena(size_t limit_bytes);
  virtual ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  size_t limit() const { return limit_; }
  // For tests: collects at every n-th allocation, and overwrites chunks that were found dead.
  void collect_every(uint64_t n) { every_ = n; }

  struct Counts {
    uint64_t collections = 0, bytes_found_dead = 0, most_bytes_in_use = 0;
  };
  Counts counts() const;

  // While a collection asks for roots: whatever these words refer to is in use.
  void reach(uint64_t word);
  void reach(const void* begin, const void* end);
  // The calling thread's registers, and its stack up to `base`.
  void reach_stack(const void* base);

 protected:
  // Returns memory with arbitrary contents, or null when the limit is reached; may collect. Words
  // that the caller does not write may still hold references of the chunk's previous owner.
  void* allocate(size_t bytes);

 private:
  static constexpr size_t kBlock = 32 << 10, kGranule = 16, kSmall = kBlock / 2;
  struct Block {
    size_t chunk_bytes = 0;                // 0: the block is free
    size_t first = 0;                      // where its chunk begins, if that has blocks to itself
    std::bitset<kBlock / kGranule> marks;  // at the granule where a chunk begins
  };
  // Free chunks of a size side by side: those that are handed out next.
  struct Run {
    char *next = nullptr, *end = nullptr;
    size_t block = 0;       // that they lie in
    size_t next_block = 0;  // blocks of the size from here on were not looked at yet
  };
  struct Chunk {
    const char* start;
    size_t bytes;
  };

  // Before and after a collection, with the bytes that were in use before it; what the first
  // returns is passed to the second.
  virtual uint64_t collection_begins(size_t) { return 0; }
  virtual void collection_ends(uint64_t, size_t, size_t /* bytes found dead */) {}
  // Calls `reach` for every root.
  virtual void reach_roots() = 0;

  void* take(size_t bytes);
  bool next_run(Run& r, size_t chunk_bytes);
  bool take_blocks(size_t chunk_bytes, size_t& first);
  void collect();
  void poison(size_t block);
  char* start_of(size_t block) const { return base_ + block * kBlock; }

  size_t limit_;
  char* base_ = nullptr;
  Block* blocks_ = nullptr;                           // room for all
  size_t begun_ = 0;                                  // blocks that were ever in use
  size_t lowest_free_ = 0;                            // no free block is below
  std::array<Run, kSmall / kGranule + 1> runs_ = {};  // by size, in granules
  std::vector<Chunk> open_;                           // reached, and their words are not
  size_t reached_ = 0;                                // bytes of marked chunks
  size_t since_ = 0;                                  // bytes handed out since
  uint64_t every_ = 0, allocations_ = 0;
  Counts counts_;
};

}  // namespace calc
