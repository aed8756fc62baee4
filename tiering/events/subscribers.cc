#include "tiering/events/subscribers.h"

#include <algorithm>
#include <cassert>

namespace uptier::tiering {
namespace {

bool wants(const Subscribers::Entry& s, const Event& e) {
  if (e.thread_sequence != 0 && e.kind == EventKind::kLost) return (s.kinds & kGuestKinds) != 0;
  bool wanted = e.kind == EventKind::kLost || (s.kinds & kinds_of(e.kind)) != 0;
  // Events of guest threads may have been recorded before, in their rings.
  return wanted && (e.thread_sequence != 0 || e.sequence > s.from);
}

}  // namespace

Status Subscribers::add(EventSubscriber& who, EventKinds kinds, uint64_t from) {
  for (const auto& e : all_) {
    if (&e->who == &who && !e->removed) {
      return Error{ErrorCode::kInvalidArgument, "subscribe: the subscriber is subscribed already"};
    }
  }
  all_.push_back(std::make_unique<Entry>(who, kinds, from));
  return {};
}

const Subscribers::Entry* Subscribers::mark_removed(const EventSubscriber& who) noexcept {
  for (const auto& e : all_) {
    if (&e->who != &who || e->removed) continue;
    e->removed = true;
    return e.get();
  }
  return nullptr;
}

// The entry may have been freed; it is only compared.
void Subscribers::await_call(const Entry* e) const noexcept {
  while (calling_.load() == e) calling_.wait(e);
}

std::vector<Subscribers::Entry*> Subscribers::begin_round() {
  std::erase_if(all_, [](const auto& e) { return e->removed.load(); });
  std::vector<Entry*> there;
  there.reserve(all_.size());
  for (const auto& e : all_) there.push_back(e.get());
  return there;
}

void Subscribers::call(Entry& to, const Event& e) noexcept {
  if (!wants(to, e)) return;
  assert(calling_.load() == nullptr);  // one drainer at a time
  calling_.store(&to);
  if (!to.removed) to.who.on_event(e);
  calling_.store(nullptr);
  if (to.removed) calling_.notify_all();
}

EventKinds Subscribers::kinds() const noexcept {
  EventKinds kinds = 0;
  for (const auto& e : all_) kinds |= e->removed ? 0 : e->kinds;
  return kinds;
}

}  // namespace uptier::tiering
