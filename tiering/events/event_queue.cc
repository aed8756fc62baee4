#include "tiering/events/event_queue.h"

#include <cassert>

#include "profile/base/wall.h"

namespace uptier::tiering {

WaitingEvent::WaitingEvent(const Event& e)
    : event(e),
      text(e.text),
      decision(e.decision == nullptr ? nullptr : std::make_unique<DecisionRecord>(*e.decision)),
      details(e.details == nullptr ? nullptr : std::make_unique<EventDetails>(*e.details)) {}

const Event& WaitingEvent::refer() {
  event.text = text;
  event.decision = decision.get();
  event.details = details.get();
  return event;
}

void EventQueue::push(const Event& e) noexcept {
  assert(waiting_.empty() || waiting_.back().event.sequence < e.sequence);  // numbers rise
  bool fits = waiting_.size() < kMost || e.kind == EventKind::kDecided;
  if (fits && unsaid_.count == 0 && finishes([&] { waiting_.emplace_back(e); })) {
    run_open_ = false;
  } else {
    lose(e);
  }
}

void EventQueue::lose(const Event& e) noexcept {
  if (run_open_) {
    assert(!waiting_.empty() && waiting_.back().event.kind == EventKind::kLost);
    ++waiting_.back().event.count;
    return;
  }
  assert(unsaid_.count == 0 || unsaid_.sequence < e.sequence);
  if (unsaid_.count == 0) unsaid_.sequence = e.sequence;
  unsaid_.at_ns = e.at_ns;
  ++unsaid_.count;
  run_open_ = finishes([&] { waiting_.emplace_back(unsaid_); });
  if (run_open_) unsaid_.count = 0;
}

std::vector<WaitingEvent> EventQueue::take() noexcept {
  run_open_ = false;
  if (unsaid_.count != 0 && finishes([&] { waiting_.emplace_back(unsaid_); })) unsaid_.count = 0;
  return std::exchange(waiting_, {});
}

}  // namespace uptier::tiering
