// SnapshotRing: flushed counters on their way from the thread that owns them to the worker.
//
// Single producer, single consumer, a byte ring of whole records. A record is never split: where
// the end of the ring is too near, a filler takes the rest. A full ring refuses, and the producer
// keeps its counts: snapshots are cumulative, so the next one carries them.
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

// Why a snapshot was taken, or what else a slow path asks for.
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
  kOptimized,  // what the instrumented copy of optimized code has counted
  kTrial,      // two versions of the method have been timed as often as was wanted
  kGuard,      // the guard in front of a version of the method has counted enough
  kTrap,       // a trap unwound `calls` frames of an instrumented copy in block `loop`
};

struct Note {
  uint32_t bytes = 0;  // of the whole record, a multiple of 8
  NoteKind kind = NoteKind::kFiller;
  uint8_t ages = 0;  // the owner ages its tables behind it (site_tables.h), so its reader does, too
  uint8_t reserved[2] = {};
  uint32_t method = 0;
  uint32_t loop = 0;   // where it was taken: LoopId index, UINT32_MAX at an entry
  uint32_t words = 0;  // counters that follow
  uint32_t copy = 0;   // kOptimized: the number of the copy whose words these are
  uint64_t calls = 0;
  uint64_t sampled_calls = 0;
  uint64_t iterations = 0;
  uint64_t bursts = 0;
  uint64_t rate = 0;  // Rate in force in the window that this ends; see rate.h
};
static_assert(sizeof(Note) == 64);

class SnapshotRing {
 public:
  // `bytes` is rounded up to a power of two.
  static Result<std::unique_ptr<SnapshotRing>> create(size_t bytes);

  // Appends a record; `note.words` and `note.bytes` are filled in. Returns false when it is full; a
  // record that is not larger than the ring fits again once the consumer has read what is in it.
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
  // Positions only grow. head_ is released by the producer after the bytes of a record and acquired
  // by the consumer before it reads them; tail_ the other way round before the bytes are reused.
  alignas(64) std::atomic<uint64_t> head_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
};

}  // namespace uptier::sampler
