// EventQueue: numbered records that wait for the drainer, each with the data it refers to.
//
// Bounded: a record that finds kMost others waiting is counted by a kLost record in its place, with
// the number of the first lost record. Decisions are always accepted. So are records after them
// while there is room; so there may be several such places.
//
//   Thread: the caller holds the lock of Events.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "uptier/events.h"
#include "uptier/report.h"

namespace uptier::tiering {

// A record that owns the data it refers to.
struct WaitingEvent {
  explicit WaitingEvent(const Event& e);
  WaitingEvent(WaitingEvent&&) = default;
  WaitingEvent& operator=(WaitingEvent&&) = default;

  // Returns the record, which is valid while this object is not moved.
  const Event& refer();

  Event event;
  std::string text;
  std::unique_ptr<DecisionRecord> decision;
  std::unique_ptr<EventDetails> details;
};

class EventQueue {
 public:
  static constexpr size_t kMost = 16'384;

  // Appends a record, whose number is above those before, or counts it as lost. If there is no
  // memory even for the count, the next record carries it.
  void push(const Event& e) noexcept;
  // Takes all records.
  std::vector<WaitingEvent> take() noexcept;
  // Makes the next loss a record of its own, because a subscriber begins to listen here.
  void end_run() { run_open_ = false; }
  bool empty() const { return waiting_.empty() && unsaid_.count == 0; }

 private:
  void lose(const Event& e) noexcept;

  std::vector<WaitingEvent> waiting_;
  bool run_open_ = false;  // the last record is a kLost record that may count more
  Event unsaid_;           // losses that could not be appended for lack of memory
};

}  // namespace uptier::tiering
