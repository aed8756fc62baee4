// EventTimes: how long each part of a description or compilation took, for Event::details.
//
// The parts follow each other without gaps. Nothing is timed unless a subscriber wants the kind.
//
//   Thread: one at a time. If memory runs out, details are missing and nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "jit/code/code.h"
#include "profile/base/wall.h"
#include "tiering/base/clock.h"
#include "tiering/events/events.h"

namespace uptier::tiering {

class EventTimes {
 public:
  // Begins the first part at `begun_ns`, when the event begins, if `kind` is wanted. 0: nothing is timed.
  EventTimes(const Events& events, EventKind kind, uint64_t begun_ns) noexcept : last_(begun_ns) {
    if (begun_ns == 0 || !events.wanted(kind)) return;
    finishes([&] { details_ = std::make_unique<EventDetails>(); });
  }

  // The part ends here, and the next one begins. `phase`: static text.
  void ended(const char* phase) noexcept;
  // Notes the methods in `rows`.
  void inlined(std::span<const jit::InlineRow> rows) noexcept;
  // Null if nothing is wanted.
  const EventDetails* details() const noexcept { return details_.get(); }

 private:
  uint64_t last_;
  std::unique_ptr<EventDetails> details_;
};

}  // namespace uptier::tiering
