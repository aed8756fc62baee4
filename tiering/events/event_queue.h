// EventQueue: numbered records that wait for the drainer, each with what it refers to.
//
// Bounded: a record that finds kMost others waiting is counted by a kLost record in its place, which
// has the number of the first one lost. A decision is taken whatever waits. So is what follows it as
// long as there is room, so there may be several such places.
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

// A record that owns what it refers to.
struct WaitingEvent {
  explicit WaitingEvent(const Event& e);
  WaitingEvent(WaitingEvent&&) = default;
  WaitingEvent& operator=(WaitingEvent&&) = default;

  // Returns the record, which is good as long as this stays where it is.
  const Event& refer();

  Event event;
  std::string text;
  std::unique_ptr<DecisionRecord> decision;
};

class EventQueue {
 public:
  static constexpr size_t kMost = 16'384;

  // Appends a record, whose number is above those before, or counts it as lost. Where memory is
  // refused even for the count, it is in the next one.
  void push(const Event& e) noexcept;
  // Takes all records.
  std::vector<WaitingEvent> take() noexcept;
  // Has the next loss be a record of its own: somebody begins to listen here.
  void end_run() { run_open_ = false; }
  bool empty() const { return waiting_.empty() && unsaid_.count == 0; }

 private:
  void lose(const Event& e) noexcept;

  std::vector<WaitingEvent> waiting_;
  bool run_open_ = false;  // the last one is a kLost record that may count more
  Event unsaid_;           // losses that there was no memory to append
};

}  // namespace uptier::tiering
