// LogRing: the records of one thread's log probes; it keeps the latest ones.
//
// A full ring overwrites its oldest record. Each record ends in one of two ways, depending on which
// function moves tail_ past it:
//
//   push   moves it to make room: the record is lost, and counted at its site
//   read   moves it after having copied the record; if push was faster, the copy is thrown away
//
// So pushed = read + lost + waiting, whatever the reader's speed, and nothing waits for anything.
//
//   Thread: push: the owner (no lock, no allocation). read: any, but one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "sampler/probe_call.h"
#include "sampler/reservation.h"

namespace uptier::sampler {

struct LogRecord {
  uint32_t method = 0;
  uint32_t site = 0;
  uint32_t tag = 0;
  uint64_t value = 0;
  uint64_t cycles = 0;  // time stamp counter

  friend bool operator==(const LogRecord&, const LogRecord&) = default;
};

class LogRing {
 public:
  // `records` is rounded up to a power of two.
  static Result<std::unique_ptr<LogRing>> create(uint32_t records);

  // Appends a record. If it is overwritten unread, it is counted in the word `lost`, which must
  // live as long as the ring. Compiled without vector instructions, see probe_call.h.
  void push(const LogRecord& r, uint64_t* lost) noexcept;

  // Removes the oldest records, at most `most`, and appends them to `out`.
  void read(std::vector<LogRecord>& out, uint64_t most = UINT64_MAX);

  // Appends copies of the waiting records to `out`, and leaves them in the ring. Thread: as read.
  void peek(std::vector<LogRecord>& out) const;

  uint64_t capacity() const { return mask_ + 1; }
  // Records so far, in total. Any thread; monotonic.
  uint64_t pushed() const { return head_.load(std::memory_order_relaxed); }
  // Records that have not been read yet.
  uint64_t waiting() const {
    return head_.load(std::memory_order_acquire) - tail_.load(std::memory_order_acquire);
  }
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  // Words are atomic because a reader may look at a record that is being overwritten.
  struct Slot {
    std::atomic<uint64_t> place, tag, value, cycles;
    uint64_t* lost;  // belongs to the owner
    uint64_t reserved[3];
  };
  static_assert(sizeof(Slot) == 64);

  LogRing(Reservation memory, uint64_t records);
  static LogRecord record_of(const Slot& s);
  Slot& slot(uint64_t position) const noexcept {
    return static_cast<Slot*>(memory_.data())[position & mask_];
  }

  Reservation memory_;
  uint64_t mask_;
  // Positions only grow. head_ is released by push after the words of a record and acquired by
  // read before it copies them. push moves tail_ past a record before it overwrites the words; it
  // releases the words, so a reader that has seen a new one (acquire) sees the new tail_ as well.
  alignas(64) std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> lost_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
};

// For compiled code: `extra` is the tag, `place` the method and site. The site's words are
// [events, lost].
extern "C" void uptier_probe_log(uint64_t* slab, const ProbeCall* call,
                                 ThreadContext* context) noexcept;

}  // namespace uptier::sampler
