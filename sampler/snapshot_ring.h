// SnapshotRing: flushed counters on their way from the thread that owns them to the worker.
//
// A byte ring of whole records, with a single producer and a single consumer. A record is never
// split: if it does not fit before the end of the ring, a filler takes the rest. A full ring
// refuses a record, and the producer keeps its counts: snapshots are cumulative, so the next one
// carries them.
//
//   Thread: push by the owner (no lock, no allocation), front/pop by one consumer at a time.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <memory>
#include <span>

#include "sampler/reservation.h"

namespace uptier::sampler {

// The reason of a snapshot, or another request of a slow path.
enum class NoteKind : uint8_t {
  kFiller,           // internal: skip to the start of the ring
  kFlushCalls,       // a flush point in calls
  kFlushIterations,  // a flush point in loop iterations
  kFlushFinal,       // the thread detaches, the method is removed, or the runtime ends
  kFlushDemand,      // Runtime::flush
  kWantCopy,         // a sample is due and there is no instrumented copy
  kWantOsr,          // a loop still runs in baseline code though the method has been optimized
  kWantNewer,        // a frame of older optimized code is in loop `loop`
  kFrame,      // a frame of optimized code in loop `loop` can be observed, or was for `calls` ns
  kOptimized,  // counts of the instrumented copy of optimized code
  kTrial,      // two versions of the method have been timed as often as wanted
  kGuard,      // the guard in front of a version of the method has counted enough
  kTrap,       // a trap unwound `calls` frames of an instrumented copy in block `loop`
};

struct Note {
  uint32_t bytes = 0;  // of the whole record, a multiple of 8
  NoteKind kind = NoteKind::kFiller;
  uint8_t ages = 0;  // the owner ages its tables after it (site_tables.h), so the reader does, too
  uint8_t settled =
      0;  // the thread runs no compiled code, so counts that follow from others are exact
  uint8_t reserved[1] = {};
  uint32_t method = 0;
  uint32_t loop = 0;   // where it was taken: LoopId index, or UINT32_MAX at an entry
  uint32_t words = 0;  // number of counters that follow
  uint32_t copy = 0;   // kOptimized: the number of the copy whose words these are
  uint64_t calls = 0;
  uint64_t sampled_calls = 0;
  uint64_t iterations = 0;
  uint64_t bursts = 0;
  uint64_t rate = 0;  // the Rate in force in the window that this note ends; see rate.h
};
static_assert(sizeof(Note) == 64);

class SnapshotRing {
 public:
  // `bytes` is rounded up to a power of two.
  static Result<std::unique_ptr<SnapshotRing>> create(size_t bytes);

  // Appends a record; fills in `note.words` and `note.bytes`. Returns false if the ring is full. A
  // record that is not larger than the ring fits once the consumer has emptied the ring.
  bool push(Note note, std::span<const uint64_t> words) noexcept;

  // Returns the oldest record, or null. Its counters follow it in memory; valid until pop().
  const Note* front() noexcept;
  std::span<const uint64_t> words(const Note& n) const {
    assert(sizeof(Note) + uint64_t{n.words} * 8 == n.bytes);
    return {reinterpret_cast<const uint64_t*>(&n + 1), n.words};
  }
  void pop() noexcept;

 private:
  explicit SnapshotRing(Reservation memory);
  Note* at(uint64_t position) const noexcept {
    return reinterpret_cast<Note*>(static_cast<char*>(memory_.data()) + (position & mask_));
  }

  Reservation memory_;
  uint64_t mask_;
  // Positions only grow. The producer releases head_ after it has written the bytes of a record,
  // and the consumer acquires it before it reads them; the reverse holds for tail_ and the reuse of
  // the bytes.
  alignas(64) std::atomic<uint64_t> head_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
};

}  // namespace uptier::sampler
