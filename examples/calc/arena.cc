#include "arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "value.h"

namespace calc {
namespace {

// Collecting less often than this would save little; what was handed out last is still in a cache.
constexpr size_t kLeastBetween = 4 << 20;
// Dead memory under collect_every: as a Val or as a pointer it faults.
constexpr uint64_t kPoison = 0xFFFADEADDEADDEAD;

// Pages are taken as they are used, so a large limit costs nothing by itself; large ones if the
// system has them, which are fewer faults.
void* reserve(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  madvise(p, bytes, MADV_HUGEPAGE);
  return p;
}

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

Arena::Arena(size_t limit_bytes) : limit_(limit_bytes / kBlock * kBlock) {
  base_ = static_cast<char*>(reserve(limit_));
  blocks_ = static_cast<Block*>(reserve(limit_ / kBlock * sizeof(Block)));
  if (base_ == nullptr || blocks_ == nullptr) limit_ = 0;
}

Arena::~Arena() {
  if (limit_ == 0) return;
  munmap(base_, limit_);
  munmap(blocks_, limit_ / kBlock * sizeof(Block));
}

// ---- Allocating

// Memory is spent when a collection leaves less than a 32nd of it.
void* Arena::allocate(size_t bytes) {
  bool due = since_ + bytes > std::max(reached_, kLeastBetween) ||
             (every_ != 0 && ++allocations_ % every_ == 0);
  if (due) collect();
  void* p = take(bytes);
  if (p != nullptr || due) return p;
  collect();
  return reached_ < limit_ - limit_ / 32 ? take(bytes) : nullptr;
}

void* Arena::take(size_t bytes) {
  size_t chunk = bytes <= 512 || bytes > kSmall ? round_up(bytes, kGranule) : std::bit_ceil(bytes);
  char* start;
  if (chunk > kSmall) {
    size_t first;
    if (!take_blocks(chunk, first)) return nullptr;
    start = start_of(first);
  } else {
    Run& r = runs_[chunk / kGranule];
    while (r.next == r.end) {
      if (!next_run(r, chunk)) return nullptr;
    }
    start = std::exchange(r.next, r.next + chunk);
  }
  since_ += chunk;
  // Clears the end of the chunk, which the owner does not fill: it must refer to nothing.
  if (chunk - bytes >= kGranule) std::memset(start + bytes, 0, chunk - bytes);
  if (chunk != bytes) std::memset(start + chunk - sizeof(uint64_t), 0, sizeof(uint64_t));
  return start;
}

// Moves to the next run of free chunks, in the same block or in the next one with chunks of the
// size. The new run may be empty.
bool Arena::next_run(Run& r, size_t chunk_bytes) {
  size_t at = r.end == nullptr ? kBlock : static_cast<size_t>(r.end - start_of(r.block));
  if (at + chunk_bytes > kBlock) {
    while (r.next_block < begun_ && blocks_[r.next_block].chunk_bytes != chunk_bytes) {
      ++r.next_block;
    }
    if (r.next_block < begun_) {
      r.block = r.next_block++;
    } else {
      r.next_block = SIZE_MAX;
      if (!take_blocks(chunk_bytes, r.block)) return false;
    }
    at = 0;
  }
  const auto& marks = blocks_[r.block].marks;
  while (at + chunk_bytes <= kBlock && marks[at / kGranule]) at += chunk_bytes;
  r.next = start_of(r.block) + at;
  while (at + chunk_bytes <= kBlock && !marks[at / kGranule]) at += chunk_bytes;
  r.end = start_of(r.block) + at;
  return true;
}

// Takes the first free blocks that lie side by side.
bool Arena::take_blocks(size_t chunk_bytes, size_t& first) {
  size_t wanted = round_up(chunk_bytes, kBlock) / kBlock;
  while (lowest_free_ < begun_ && blocks_[lowest_free_].chunk_bytes != 0) ++lowest_free_;
  for (size_t k = lowest_free_, free = 0; k < limit_ / kBlock; ++k) {
    free = blocks_[k].chunk_bytes == 0 ? free + 1 : 0;
    if (free < wanted) continue;
    first = k + 1 - wanted;
    for (size_t i = first; i <= k; ++i) blocks_[i] = {chunk_bytes, first, {}};
    begun_ = std::max(begun_, k + 1);
    if (first == lowest_free_) lowest_free_ = k + 1;
    return true;
  }
  return false;
}

// ---- Collecting

void Arena::collect() {
  counts_ = counts();
  ++counts_.collections;
  const size_t in_use = reached_ + since_;
  const uint64_t told = collection_begins(in_use);
  reached_ = since_ = lowest_free_ = 0;
  runs_.fill({});
  for (size_t k = 0; k < begun_; ++k) blocks_[k].marks.reset();
  reach_roots();
  while (!open_.empty()) {
    Chunk c = open_.back();
    open_.pop_back();
    reach(c.start, c.start + c.bytes);
  }
  const size_t found_dead = in_use - std::min(in_use, reached_);
  counts_.bytes_found_dead += found_dead;
  for (size_t k = 0; k < begun_; ++k) {
    if (every_ != 0) poison(k);
    if (blocks_[blocks_[k].first].marks.none()) blocks_[k].chunk_bytes = 0;
  }
  collection_ends(told, in_use, found_dead);
}

void Arena::reach(uint64_t word) {
  size_t at = (is_object(word) ? word - kObjectTag : word) - reinterpret_cast<uintptr_t>(base_);
  if (at >= begun_ * kBlock || blocks_[at / kBlock].chunk_bytes == 0) return;
  size_t first = blocks_[at / kBlock].first;
  Block& b = blocks_[first];
  size_t offset = at - first * kBlock;
  offset -= offset % b.chunk_bytes;
  if (offset != 0 && offset + b.chunk_bytes > kBlock) return;  // after the last chunk
  if (b.marks[offset / kGranule]) return;
  b.marks[offset / kGranule] = true;
  reached_ += b.chunk_bytes;
  open_.push_back({start_of(first) + offset, b.chunk_bytes});
}

// AddressSanitizer would object to reads of the words between variables.
__attribute__((no_sanitize("address"))) void Arena::reach(const void* begin, const void* end) {
  for (auto* w = static_cast<const uint64_t*>(begin); w < end; ++w) reach(*w);
}

// This frame holds the values that callers keep in registers; the frame of `below` is under it.
[[gnu::noinline]] void Arena::reach_stack(const void* base) {
  __builtin_unwind_init();
  auto below = [&]() __attribute__((noinline)) { reach(__builtin_frame_address(0), base); };
  below();
  asm volatile("" ::: "memory");  // this frame stays until then
}

// Dead chunks that have not been poisoned yet.
void Arena::poison(size_t block) {
  const Block& b = blocks_[block];
  if (b.chunk_bytes == 0 || b.first != block) return;
  for (size_t at = 0; at == 0 || at + b.chunk_bytes <= kBlock; at += b.chunk_bytes) {
    auto* words = reinterpret_cast<uint64_t*>(start_of(block) + at);
    bool dead = !b.marks[at / kGranule] && *words != kPoison;
    if (dead) std::fill_n(words, b.chunk_bytes / sizeof *words, kPoison);
  }
}

Arena::Counts Arena::counts() const {
  Counts c = counts_;
  c.most_bytes_in_use = std::max<uint64_t>(c.most_bytes_in_use, reached_ + since_);
  return c;
}

}  // namespace calc
