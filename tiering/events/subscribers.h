// Subscribers: the receivers of records, and how they are removed.
//
// The law: after remove() has returned, the subscriber is not called any more, and no call of it is
// in progress, unless the caller itself is that call. Two words order this, both seq_cst:
//
//   drainer    calling = s; call unless s.removed;  calling = null; wake waiters if s.removed
//   remover    s.removed = true;  wait while calling == s
//
// Either the drainer sees the flag and does not call, or the remover sees the call and waits for
// it.
//
//   Thread: add, mark_removed and begin_round: with the lock of Events. call: only the drainer.
//   await_call: the thread that marked, without the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "uptier/events.h"
#include "uptier/result.h"

namespace uptier::tiering {

// The kinds that guest threads record in rings of their own.
inline constexpr EventKinds kGuestKinds = kinds_of(EventKind::kEntered, EventKind::kLeft);

class Subscribers {
 public:
  struct Entry {
    Entry(EventSubscriber& who, EventKinds kinds, uint64_t from)
        : who(who), kinds(kinds), from(from) {}
    EventSubscriber& who;
    const EventKinds kinds;
    const uint64_t from;  // it receives only later numbers
    std::atomic<bool> removed{false};
  };

  // Adds a subscriber. Errors: kInvalidArgument if it is subscribed already.
  Status add(EventSubscriber& who, EventKinds kinds, uint64_t from);
  // Marks a subscriber as removed, and returns it for await_call(); null if it is not subscribed.
  const Entry* mark_removed(const EventSubscriber& who) noexcept;
  // Waits until no call of it is in progress.
  void await_call(const Entry* e) const noexcept;
  // Returns the current subscribers, and frees removed ones. No round is in progress.
  std::vector<Entry*> begin_round();
  // Calls a subscriber if it wants the record and has not been removed.
  void call(Entry& to, const Event& e) noexcept;
  // Returns the kinds that any subscriber wants.
  EventKinds kinds() const noexcept;

 private:
  std::vector<std::unique_ptr<Entry>> all_;
  std::atomic<const Entry*> calling_{nullptr};
};

}  // namespace uptier::tiering
