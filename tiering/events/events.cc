#include "tiering/events/events.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "profile/base/room.h"
#include "profile/base/wall.h"
#include "tiering/base/clock.h"

namespace uptier::tiering {
namespace {

// Orders by number. Among equal numbers, the change itself precedes events of guest threads that
// saw it.
bool comes_before(const WaitingEvent& a, const WaitingEvent& b) {
  if (a.event.sequence != b.event.sequence) return a.event.sequence < b.event.sequence;
  return a.event.thread_sequence == 0 && b.event.thread_sequence != 0;
}

}  // namespace

void Events::listen(EventListener& l, EventKinds kinds) {
  listeners_.push_back({&l, kinds});
  heard_ |= kinds;
  const Held lock(mutex_);
  change_kinds();
}

// ---- Emitting -----------------------------------------------------------------------------------

void Events::emit_slow(const Event& e) noexcept {
  const bool queues = wanted(e.kind);
  Event numbered = e;
  if (queues) {
    numbered = queue_numbered(e);
  } else {
    numbered.sequence = sequence_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  for (const Listening& l : listeners_) {
    if ((l.kinds & kinds_of(e.kind)) != 0) l.listener->hear(numbered);
  }
  if (queues) tell_drainer();
}

Event Events::queue_numbered(Event e) noexcept {
  if (e.at_ns == 0) e.at_ns = now_ns();
  e.native_thread = static_cast<uint32_t>(::gettid());
  const Held lock(mutex_);
  e.sequence = queued_ = sequence_.fetch_add(1, std::memory_order_relaxed) + 1;
  assert(queued_ > delivered_.load());
  queue_.push(e);
  return e;
}

void Events::emit_here(const Event& e) noexcept {
  if (wanted(e.kind)) {
    queue_numbered(e);
    pending_ = true;
  } else {
    sequence_.fetch_add(1, std::memory_order_relaxed);
  }
  deliver();
}

void Events::tell_drainer() noexcept {
  if (!pending_.exchange(true) && wake_ != nullptr) wake_(wake_of_);
}

// ---- Guest threads ------------------------------------------------------------------------------

void GuestEvents::push_slow(GuestRing& ring, Event e) noexcept {
  if (e.at_ns == 0) e.at_ns = now_ns();
  if (ring.push(e, events_->last())) events_->tell_drainer();
}

GuestEvents::~GuestEvents() {
  if (events_ != nullptr) events_->remove_thread(*this);
}

void Events::add_thread(GuestEvents& t, uint32_t number) {
  const Held lock(mutex_);
  assert(t.events_ == nullptr && number != 0);
  OfThread made{&t, nullptr, number, static_cast<uint32_t>(::gettid())};
  if (guests_wanted()) make_ring(made);
  threads_.push_back(std::move(made));
  t.events_ = this;
  show_ring(threads_.back());
}

void Events::remove_thread(GuestEvents& t) noexcept {
  const Held lock(mutex_);
  t.ring_.store(nullptr, std::memory_order_relaxed);
  t.events_ = nullptr;
  auto at = std::ranges::find(threads_, &t, &OfThread::thread);
  if (at == threads_.end()) return;
  at->thread = nullptr;
  if (at->ring == nullptr || at->ring->empty()) {
    threads_.erase(at);
  } else {
    tell_drainer();
  }
}

bool Events::guests_wanted() const noexcept {
  return (subscribed_.load(std::memory_order_relaxed) & kGuestKinds) != 0;
}

// Once made, a ring stays as long as its thread, which may be pushing right now.
void Events::make_ring(OfThread& t) {
  if (t.ring == nullptr) t.ring = std::make_unique<GuestRing>(t.number, t.native_number);
}

// Gives a thread its ring if guest events are wanted, and null otherwise.
void Events::show_ring(const OfThread& t) const noexcept {
  if (t.thread == nullptr) return;
  t.thread->ring_.store(guests_wanted() ? t.ring.get() : nullptr, std::memory_order_release);
}

// ---- Delivering ---------------------------------------------------------------------------------

// A thread sets pending_ and then looks at delivering_; the drainer clears delivering_ and then
// looks at pending_. So one of the two sees the other.
void Events::deliver_slow() noexcept {
  if (in_subscriber()) return;
  while (pending_.load()) {
    if (delivering_.exchange(true)) return;
    assert(deliverer_.load(std::memory_order_relaxed) == std::thread::id());
    deliverer_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    while (pending_.exchange(false)) deliver_round();
    deliverer_.store({}, std::memory_order_relaxed);
    delivering_.store(false);
  }
}

void Events::deliver_all() noexcept {
  if (in_subscriber()) return;
  uint64_t upto;
  {
    const Held lock(mutex_);
    upto = queued_;
  }
  pending_ = true;  // the thread that queued an event may not have set this yet
  deliver();
  assert(!in_subscriber());
  for (uint64_t d = delivered_.load(); d < upto; d = delivered_.load()) delivered_.wait(d);
}

// If there is no memory to take them, events stay where they are until the next round.
void Events::deliver_round() noexcept {
  std::vector<WaitingEvent> round;
  std::vector<Subscribers::Entry*> to;
  uint64_t upto = 0;
  finishes([&] {
    const Held lock(mutex_);
    upto = queued_;
    to = subscribers_.begin_round();
    round = take_all();
  });
  assert(upto >= delivered_.load());
  for (WaitingEvent& e : round) {
    for (Subscribers::Entry* s : to) subscribers_.call(*s, e.refer());
  }
  delivered_.store(upto);
  delivered_.notify_all();
}

std::vector<WaitingEvent> Events::take_all() {
  const uint64_t upto = last();
  std::vector<WaitingEvent> round = queue_.take();
  const size_t numbered = round.size();
  finishes([&] {
    mutex_.known_held();
    take_rings(upto, round);
  });
  if (round.size() != numbered) std::ranges::stable_sort(round, comes_before);
  return round;
}

void Events::take_rings(uint64_t upto, std::vector<WaitingEvent>& to) {
  for (OfThread& t : threads_) {
    if (t.ring == nullptr) continue;
    // A thread can push as many again while its ring is read. The rest comes with the next round.
    constexpr size_t kMost = 2 * GuestRing::kRecords;
    make_room(to, kMost);
    if (t.ring->drain(upto, kMost, [&](const Event& e) { to.emplace_back(e); })) pending_ = true;
  }
  std::erase_if(threads_, [](const OfThread& t) {
    return t.thread == nullptr && (t.ring == nullptr || t.ring->empty());
  });
}

// ---- Subscribers --------------------------------------------------------------------------------

Status Events::check_change(const char* call) const {
  if (!in_subscriber()) return {};
  return Error{
      ErrorCode::kInvalidArgument,
      std::string(call) +
          ": refused in a subscriber of events, which may read the runtime but not change it"};
}

void Events::change_kinds() noexcept {
  const EventKinds kinds = subscribers_.kinds();
  subscribed_.store(kinds, std::memory_order_relaxed);
  interest_.store(kinds | heard_, std::memory_order_relaxed);
  for (const OfThread& t : threads_) show_ring(t);
}

Result<uint64_t> Events::subscribe(EventSubscriber& who, EventKinds kinds) {
  const Held lock(mutex_);
  if ((kinds & kGuestKinds) != 0) {
    for (OfThread& t : threads_) make_ring(t);
  }
  const uint64_t from = last();
  if (Status s = subscribers_.add(who, kinds, from); !s) return s.error();
  queue_.end_run();
  change_kinds();
  return from;
}

Status Events::unsubscribe(EventSubscriber& who) {
  const Subscribers::Entry* gone;
  {
    const Held lock(mutex_);
    gone = subscribers_.mark_removed(who);
    change_kinds();
  }
  if (gone == nullptr) {
    return Error{ErrorCode::kNotFound, "unsubscribe: the subscriber is not subscribed"};
  }
  tell_drainer();  // the drainer removes the entry
  if (!in_subscriber()) subscribers_.await_call(gone);
  return {};
}

}  // namespace uptier::tiering
