#include "sampler/snapshot_ring.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace uptier::sampler {

SnapshotRing::SnapshotRing(Reservation memory)
    : memory_(std::move(memory)), mask_(memory_.size() - 1) {}

Result<std::unique_ptr<SnapshotRing>> SnapshotRing::create(size_t bytes) {
  Result<Reservation> r = Reservation::create(std::bit_ceil(bytes < 4096 ? 4096 : bytes), "ring");
  if (!r) return r.error();
  return std::unique_ptr<SnapshotRing>(new SnapshotRing(std::move(*r)));
}

bool SnapshotRing::push(Note note, std::span<const uint64_t> words) noexcept {
  uint64_t size = memory_.size();
  uint64_t need = sizeof(Note) + words.size_bytes();
  assert(std::has_single_bit(size));
  uint64_t head = head_.load(std::memory_order_relaxed);
  uint64_t room_to_end = size - (head & mask_);
  // A filler needs only its `bytes` and `kind`: records are multiples of 8, so there are 8 bytes.
  uint64_t filler = room_to_end < need ? room_to_end : 0;
  // Acquire pairs with pop(): the consumer has read the bytes that are about to be reused.
  uint64_t tail = tail_.load(std::memory_order_acquire);
  assert(tail <= head && head - tail <= size);                // at most a ring is unread
  assert(head % 8 == 0 && filler % 8 == 0 && need % 8 == 0);  // so there is room for a filler's
                                                              // size
  bool fits = head + filler + need - tail <= size;
  // A record of half a ring or more may never fit after its own filler, even in an empty ring. Then
  // the filler is written alone, and the record fits at the start of the ring once the consumer has
  // read all.
  bool makes_room = 2 * need > size && need <= size && head + filler - tail <= size;
  if (!fits && !makes_room) return false;
  if (filler != 0) {
    Note* f = at(head);
    f->bytes = static_cast<uint32_t>(filler);
    f->kind = NoteKind::kFiller;
    head += filler;
  }
  if (!fits) {
    head_.store(head, std::memory_order_release);  // pairs with front()
    return false;
  }
  assert((head & mask_) + need <= size);  // a record is never split
  note.bytes = static_cast<uint32_t>(need);
  note.words = static_cast<uint32_t>(words.size());
  std::memcpy(at(head), &note, sizeof note);
  if (!words.empty())
    std::memcpy(static_cast<void*>(at(head) + 1), words.data(), words.size_bytes());
  // Release pairs with front(): the record is whole before it is seen.
  head_.store(head + need, std::memory_order_release);
  return true;
}

const Note* SnapshotRing::front() noexcept {
  uint64_t head = head_.load(std::memory_order_acquire);  // pairs with push()
  uint64_t tail = tail_.load(std::memory_order_relaxed);
  if (tail == head) return nullptr;
  assert(tail < head);
  const Note* n = at(tail);
  if (n->kind != NoteKind::kFiller) return n;
  tail_.store(tail + n->bytes, std::memory_order_release);
  return front();
}

void SnapshotRing::pop() noexcept {
  uint64_t tail = tail_.load(std::memory_order_relaxed);
  // Release pairs with push(): the record has been read.
  assert(tail + at(tail)->bytes <= head_.load(std::memory_order_relaxed));
  tail_.store(tail + at(tail)->bytes, std::memory_order_release);
}

}  // namespace uptier::sampler
