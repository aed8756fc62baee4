// GuestRing: records of one guest thread on their way to the drainer.
//
// Single producer, single consumer; push takes no lock and allocates nothing. The law of a full
// ring: once a record does not fit, records are only counted until the consumer has emptied the
// ring. So all lost records lie between the last record in the ring and the next one, and one kLost
// record at that place reports them.
//
//   Thread: push: the owner; drain: any, one thread at a time.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "uptier/events.h"

namespace uptier::tiering {

class GuestRing {
 public:
  static constexpr uint64_t kRecords = 256;

  // `thread`, `native_thread`: its numbers, see Event.
  GuestRing(uint32_t thread, uint32_t native_thread)
      : thread_(thread), native_thread_(native_thread), records_(new Event[kRecords]) {}

  // Appends a record, whose text must be static. `seen`: the last number that the thread has seen.
  // Returns whether to notify the drainer, because the ring was empty.
  bool push(Event e, uint64_t seen) noexcept {
    e.thread = thread_;
    e.native_thread = native_thread_;
    e.sequence = seen;
    e.thread_sequence = ++pushed_;
    const uint64_t head = head_.load(std::memory_order_relaxed);
    while (true) {
      // Acquire pairs with the exchange in drain(): first_lost_ has been copied.
      if (uint64_t lost = lost_.load(std::memory_order_acquire); lost != 0) {
        if (lost_.compare_exchange_strong(lost, lost + 1)) return false;
        continue;
      }
      // Acquire pairs with drain(): the record at this position has been copied.
      if (head - tail_.load(std::memory_order_acquire) < kRecords) break;
      first_lost_ = loss_at(e);
      lost_.store(1);
      return tail_.load() == head;
    }
    assert(lost_.load(std::memory_order_relaxed) == 0);  // nothing is added until the ring is empty
    records_[head % kRecords] = e;
    // seq_cst, here and above, as in drain(): either the drainer sees this record, or this thread
    // sees that the drainer has emptied the ring.
    head_.store(head + 1);
    return tail_.load() == head;
  }

  // Moves out, in order, at most `most` records that saw no number above `upto`: visit(const
  // Event&). Returns whether others are left. If visit throws, its record stays.
  template <typename F>
  bool drain(uint64_t upto, size_t most, F&& visit) {
    uint64_t tail = tail_.load(std::memory_order_relaxed);
    while (true) {
      const uint64_t head = head_.load();
      assert(tail <= head && head - tail <= kRecords);
      for (; tail != head; tail_.store(++tail)) {
        const Event& e = records_[tail % kRecords];
        if (e.sequence > upto || most-- == 0) return true;
        visit(e);
      }
      if (lost_.load() == 0) return false;
      // Now the owner adds nothing, so it can be determined whether the loss comes next.
      if (head_.load() != tail) continue;
      if (first_lost_.sequence > upto || most-- == 0) return true;
      Event lost = first_lost_;                           // before the owner may write it again
      assert(lost_.load() != 0 && tail == head_.load());  // the owner adds nothing meanwhile
      lost.count = lost_.exchange(0);
      visit(lost);
    }
  }

  // Says whether there is nothing to drain. Called by the consumer.
  bool empty() const noexcept { return head_.load() == tail_.load() && lost_.load() == 0; }

 private:
  static Event loss_at(const Event& first) {
    Event e;
    e.thread = first.thread;
    e.native_thread = first.native_thread;
    e.sequence = first.sequence;
    e.thread_sequence = first.thread_sequence;
    e.at_ns = first.at_ns;
    return e;
  }

  const uint32_t thread_, native_thread_;
  std::unique_ptr<Event[]> records_;
  uint64_t pushed_ = 0;  // the owner's; includes lost records
  // Positions only grow.
  alignas(64) std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> lost_{0};
  Event first_lost_;  // written by the owner while lost_ is 0, read by the consumer while it is not
                      // 0
  alignas(64) std::atomic<uint64_t> tail_{0};
};

}  // namespace uptier::tiering
