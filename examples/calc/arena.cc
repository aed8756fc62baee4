#include "arena.h"

#include <sys/mman.h>

#include <bit>
#include <cstring>

namespace calc {
namespace {

// Collecting less often than this would save little; what was handed out last is still in a cache.
constexpr size_t kLeastBetween = 4 << 20;
// Dead memory under collect_every: as a Val or as a pointer it faults.
constexpr uint64_t kPoison = 0xFFFADEADDEADDEAD;

void* reserve(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

bool test(const Block::Bits& bits, size_t bit) { return (bits[bit / 64] >> bit % 64 & 1) != 0; }
void set(Block::Bits& bits, size_t bit) { bits[bit / 64] |= uint64_t{1} << bit % 64; }
void clear(Block::Bits& bits, size_t bit) { bits[bit / 64] &= ~(uint64_t{1} << bit % 64); }

void poison(char* p, size_t bytes) {
  for (size_t at = 0; at < bytes; at += sizeof kPoison)
    std::memcpy(p + at, &kPoison, sizeof kPoison);
}

uint32_t blocks_of(size_t bytes) {
  return static_cast<uint32_t>((bytes + Block::kBytes - 1) / Block::kBytes);
}

}  // namespace

Arena::Arena(size_t limit_bytes) : limit_(limit_bytes / Block::kBytes * Block::kBytes) {
  base_ = static_cast<char*>(reserve(limit_));
  blocks_ = static_cast<Block*>(reserve(limit_ / Block::kBytes * sizeof(Block)));
  if (base_ == nullptr || blocks_ == nullptr) limit_ = 0;
  for (auto& of_kind : runs_) {
    for (size_t c = 0; c < kSizes; ++c) of_kind[c].bytes = kSizeOf[c];
  }
}

Arena::~Arena() {
  if (limit_ == 0) return;
  munmap(base_, limit_);
  munmap(blocks_, limit_ / Block::kBytes * sizeof(Block));
}

// ---- Allocating

// Memory is spent when a collection leaves less than a 32nd of it.
void* Arena::allocate_slow(size_t bytes, Holds holds) {
  bool due = since_ + bytes > std::max(reached_, kLeastBetween);
  bool collected = every_ != 0 ? ++allocations_ % every_ == 0 : due;
  if (collected) collect();
  void* p = take(bytes, holds);
  if (p != nullptr || collected) return p;
  collect();
  return reached_ < limit_ - limit_ / 32 ? take(bytes, holds) : nullptr;
}

void* Arena::take(size_t bytes, Holds holds) {
  if (bytes > kSmall) {
    uint32_t count = blocks_of(bytes);
    Block* b = take_blocks(count);
    if (b == nullptr) return nullptr;
    for (uint32_t k = 0; k < count; ++k) {
      b[k].chunk_bytes = count * Block::kBytes;
      b[k].first = index_of(*b);
      b[k].holds = holds;
    }
    set(b->live, 0);
    since_ += count * Block::kBytes;
    return start_of(*b);
  }
  Run& r = runs_[static_cast<size_t>(holds)][size_class(bytes)];
  while (r.block == nullptr || !next_run(r)) {
    Block* b = r.available;
    if (b != nullptr) {
      r.available = b->next;
    } else {
      b = take_blocks(1);
      if (b == nullptr) return r.block = nullptr;
      b->chunk_bytes = r.bytes;
      b->first = index_of(*b);
      b->holds = holds;
    }
    r.block = b;
    r.next = r.end = start_of(*b);
  }
  char* p = r.next;
  r.next += r.bytes;
  return p;
}

// Finds the next free chunks of the block, and takes them all at once.
bool Arena::next_run(Run& r) {
  char* start = start_of(*r.block);
  size_t at = static_cast<size_t>(r.end - start), last = Block::kBytes - r.bytes;
  while (at <= last && test(r.block->live, at / Block::kGranule)) at += r.bytes;
  r.next = r.end = start + at;
  for (; at <= last && !test(r.block->live, at / Block::kGranule); at += r.bytes) {
    set(r.block->live, at / Block::kGranule);
    since_ += r.bytes;
    r.end = start + at + r.bytes;
    if (every_ != 0) break;  // so that each allocation asks
  }
  return r.next < r.end;
}

// Returns neighbouring free blocks, or null.
Block* Arena::take_blocks(uint32_t count) {
  if (free_ >= count) {
    for (uint32_t k = lowest_free_, n = 0; k < begun_; ++k) {
      n = blocks_[k].chunk_bytes == 0 ? n + 1 : 0;
      if (n < count) continue;
      free_ -= count;
      if (count == 1) lowest_free_ = k + 1;
      return &blocks_[k + 1 - count];
    }
  }
  return extend(count) ? &blocks_[begun_ - count] : nullptr;
}

// Pages are taken as they are used, so a large limit costs nothing by itself; many at a time, which
// costs less than a fault for each.
bool Arena::extend(uint32_t count) {
  auto all = static_cast<uint32_t>(limit_ / Block::kBytes);
  if (count > all - begun_) return false;
  begun_ += count;
  if (begun_ <= ready_) return true;
  uint32_t to = std::min(all, std::max(begun_, ready_ + blocks_of(1 << 20)));
#ifdef MADV_POPULATE_WRITE
  madvise(base_ + ready_ * Block::kBytes, (to - ready_) * Block::kBytes, MADV_POPULATE_WRITE);
#endif
  ready_ = to;
  return true;
}

// ---- Collecting

void Arena::collect() {
  ++counts_.collections;
  size_t in_use = reached_ + since_;
  counts_.most_bytes_in_use = std::max<uint64_t>(counts_.most_bytes_in_use, in_use);
  close_runs();
  reached_ = since_ = 0;
  mark_reached();
  sweep();
  counts_.bytes_found_dead += in_use - std::min(in_use, reached_);
}

// What is left of runs was never handed out.
void Arena::close_runs() {
  for (auto& of_kind : runs_) {
    for (Run& r : of_kind) {
      for (; r.next != r.end; r.next += r.bytes) {
        clear(r.block->live, static_cast<size_t>(r.next - start_of(*r.block)) / Block::kGranule);
      }
      r.next = r.end = nullptr;
      r.block = r.available = nullptr;
    }
  }
}

void Arena::sweep() {
  for (uint32_t k = begun_; k-- > 0;) {
    Block& b = blocks_[k];
    if (b.chunk_bytes == 0 || b.first != k) continue;
    b.chunk_bytes > kSmall ? sweep_large(b) : sweep_chunks(b);
  }
}

void Arena::sweep_chunks(Block& b) {
  size_t count = 0;
  for (uint64_t word : b.marks) count += static_cast<size_t>(std::popcount(word));
  for (size_t at = 0; every_ != 0 && at + b.chunk_bytes <= Block::kBytes; at += b.chunk_bytes) {
    bool dead = test(b.live, at / Block::kGranule) && !test(b.marks, at / Block::kGranule);
    if (dead) poison(start_of(b) + at, b.chunk_bytes);
  }
  b.live = b.marks;
  b.marks = {};
  if (count == 0) return free_blocks(b, 1);
  if (count == Block::kBytes / b.chunk_bytes) return;
  Run& r = run_of(b);
  b.next = r.available;
  r.available = &b;
}

void Arena::sweep_large(Block& b) {
  bool reached = test(b.marks, 0);
  b.marks = {};
  if (reached) return;
  if (every_ != 0) poison(start_of(b), b.chunk_bytes);
  b.live = {};
  free_blocks(b, blocks_of(b.chunk_bytes));
}

void Arena::free_blocks(Block& first, uint32_t count) {
  for (uint32_t k = 0; k < count; ++k) (&first)[k].chunk_bytes = 0;
  free_ += count;
  lowest_free_ = std::min(lowest_free_, index_of(first));
}

Arena::Counts Arena::counts() const {
  Counts c = counts_;
  c.most_bytes_in_use = std::max<uint64_t>(c.most_bytes_in_use, reached_ + since_);
  return c;
}

Arena::Chunk Arena::find(uintptr_t address) const {
  size_t at = address - reinterpret_cast<uintptr_t>(base_);
  if (at >= begun_ * Block::kBytes) return {};
  const Block* b = &blocks_[at / Block::kBytes];
  if (b->chunk_bytes == 0) return {};
  b = &blocks_[b->first];
  size_t offset = at - b->first * Block::kBytes;
  offset -= offset % b->chunk_bytes;
  if (!test(b->live, offset / Block::kGranule)) return {};
  return {start_of(*b) + offset, b->chunk_bytes, b->holds};
}

}  // namespace calc
