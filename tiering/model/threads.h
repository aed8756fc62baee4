// Threads: the threads attached to a runtime, and the totals of detached ones.
//
// The law: the losses, log records and time of a thread are counted once: by the thread while it is
// attached, and here afterwards. Unread log records of detached threads are kept up to the size of
// one thread's ring; older ones are lost, and counted.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "tiering/base/state_lock.h"
#include "tiering/model/thread.h"
#include "uptier/report.h"
#include "uptier/runtime.h"

namespace uptier::tiering {

class Threads {
 public:
  // `log_records`: how many records of detached threads are kept.
  explicit Threads(uint64_t log_records) : log_records_(log_records) {}

  std::span<const std::unique_ptr<AttachedThread>> all() const UPTIER_REQUIRES(state_lock) {
    return threads_;
  }
  auto begin() const UPTIER_REQUIRES(state_lock) { return threads_.begin(); }
  auto end() const UPTIER_REQUIRES(state_lock) { return threads_.end(); }
  size_t size() const UPTIER_REQUIRES(state_lock) { return threads_.size(); }
  bool empty() const UPTIER_REQUIRES(state_lock) { return threads_.empty(); }

  // Returns the number of the next thread, from 1.
  uint32_t next_number() UPTIER_REQUIRES(state_lock) { return ++numbers_; }
  uint32_t last_number() const UPTIER_REQUIRES(state_lock) { return numbers_; }
  void add(std::unique_ptr<AttachedThread> t) UPTIER_REQUIRES(state_lock);
  // After this, the next add() needs no memory.
  void make_room() UPTIER_REQUIRES(state_lock) { threads_.reserve(threads_.size() + 1); }
  // Removes a thread that detaches; it has flushed its counts.
  void remove(const AttachedThread& t) UPTIER_REQUIRES(state_lock);
  // Removes all: the end of the runtime.
  void clear() UPTIER_REQUIRES(state_lock) { threads_.clear(); }

  // Takes the unread log records, those of detached threads first.
  std::vector<LogRecord> read_log() UPTIER_REQUIRES(state_lock);
  // Keeps the records of a thread whose ring, or whose records' method, is about to go.
  void keep_log(AttachedThread& t) UPTIER_REQUIRES(state_lock);

  // Adds the losses of all of them.
  void add_losses(LossReport& to) const UPTIER_REQUIRES(state_lock);
  // Returns the processor time of all of them while they were attached.
  uint64_t lived_ns() const UPTIER_REQUIRES(state_lock);

 private:
  const uint64_t log_records_;
  uint32_t numbers_ = 0;
  std::vector<std::unique_ptr<AttachedThread>> threads_;
  // Totals of detached threads.
  std::deque<LogRecord> gone_log_;
  LossReport gone_losses_;
  uint64_t gone_lived_ns_ = 0;
};

}  // namespace uptier::tiering
