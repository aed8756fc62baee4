// Threads: the threads that are attached to a runtime, and the totals of threads that were.
//
// The law: what a thread has lost, logged and lived is counted once, while it is there by asking it, and
// from then on here. Of log records that nobody has read, so many of gone threads are kept as one
// thread's ring has room for; older ones are lost, and counted.
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "tiering/model/thread.h"
#include "uptier/report.h"
#include "uptier/runtime.h"

namespace uptier::tiering {

class Threads {
 public:
  // `log_records`: of gone threads, that are kept.
  explicit Threads(uint64_t log_records) : log_records_(log_records) {}

  std::span<const std::unique_ptr<AttachedThread>> all() const { return threads_; }
  auto begin() const { return threads_.begin(); }
  auto end() const { return threads_.end(); }
  size_t size() const { return threads_.size(); }
  bool empty() const { return threads_.empty(); }

  // Returns the number of the next thread, from 1.
  uint32_t next_number() { return ++numbers_; }
  uint32_t last_number() const { return numbers_; }
  void add(std::unique_ptr<AttachedThread> t);
  // After it, the next add() needs no memory.
  void make_room() { threads_.reserve(threads_.size() + 1); }
  // A thread goes, which has handed over what it counted.
  void remove(const AttachedThread& t);
  // All go: the end of the runtime.
  void clear() { threads_.clear(); }

  // Takes the log records that nobody has read, those of gone threads first.
  std::vector<LogRecord> read_log();
  // Keeps those of a thread: its ring is about to go, or what the records are of.
  void keep_log(AttachedThread& t);

  // Adds what all of them have lost.
  void add_losses(LossReport& to) const;
  // Returns the processor time of all of them while they were attached.
  uint64_t lived_ns() const;

 private:
  const uint64_t log_records_;
  uint32_t numbers_ = 0;
  std::vector<std::unique_ptr<AttachedThread>> threads_;
  // Of threads that have gone.
  std::deque<LogRecord> gone_log_;
  LossReport gone_losses_;
  uint64_t gone_lived_ns_ = 0;
};

}  // namespace uptier::tiering
