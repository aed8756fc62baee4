// Subscribers: who receives records, and how they stop.
//
// The law: after remove() has returned, the subscriber is not called any more, nor is it being called,
// unless it is the caller itself that is being called. Two words order this, both seq_cst:
//
//   drainer    calling = s; call unless s.removed;  calling = null; wake who waits if s.removed
//   remover    s.removed = true;  wait while calling == s
//
// Either the drainer sees the flag and does not call, or the remover sees the call and waits for it.
//
//   Thread: add, mark_removed and begin_round with the lock of Events; call by the drainer alone;
//   await_call by who marked, without the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "uptier/events.h"
#include "uptier/result.h"

namespace uptier::tiering {

// What guest threads record in rings of their own.
inline constexpr EventKinds kGuestKinds = kinds_of(EventKind::kEntered, EventKind::kLeft);

class Subscribers {
 public:
  struct Entry {
    Entry(EventSubscriber& who, EventKinds kinds, uint64_t from)
        : who(who), kinds(kinds), from(from) {}
    EventSubscriber& who;
    const EventKinds kinds;
    const uint64_t from;  // the last number that it does not receive
    std::atomic<bool> removed{false};
  };

  // Adds one. Errors: kInvalidArgument when it is there already.
  Status add(EventSubscriber& who, EventKinds kinds, uint64_t from);
  // Marks one, which await_call() is to be given; null when it is not there.
  const Entry* mark_removed(const EventSubscriber& who) noexcept;
  // Waits while it is being called.
  void await_call(const Entry* e) const noexcept;
  // Returns those that are there, and forgets those that were removed. No round is under way.
  std::vector<Entry*> begin_round();
  // Calls one if it wants the record and has not been removed.
  void call(Entry& to, const Event& e) noexcept;
  // Returns the kinds that anybody wants.
  EventKinds kinds() const noexcept;

 private:
  std::vector<std::unique_ptr<Entry>> all_;
  std::atomic<const Entry*> calling_{nullptr};
};

}  // namespace uptier::tiering
