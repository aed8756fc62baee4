// The door of events as programs see it, and what guest threads say there (uptier/events.h).
#include "profile/base/wall.h"
#include "tiering/model/event_of.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

// Before the first record.
void RuntimeImpl::open_events() {
  events_.listen(losses_, LossCounts::kHears);
  if (!options_.profile.empty()) events_.listen(versions_, VersionLog::kHears);
  if (options_.workers == 0) return;
  events_.set_wake([](void* worker) noexcept { static_cast<WorkerThread*>(worker)->wake(); },
                   &worker_);
}

Result<uint64_t> RuntimeImpl::subscribe(EventSubscriber& who, EventKinds kinds) try {
  if (forked()) return forked_error();
  return events_.subscribe(who, kinds);
} catch (const std::exception&) { return out_of_memory("subscribe"); }

Status RuntimeImpl::unsubscribe(EventSubscriber& who) {
  if (forked()) return forked_error();
  events_.deliver_all();
  const Delivery delivery(*this);
  return events_.unsubscribe(who);
}

bool RuntimeImpl::is_in_subscriber(const char* call) const {
  Status s = events_.check_change(call);
  if (!s) log_.say(LogLevel::kError, s.error().message);
  return !s;
}

// ---- Below guest frames: the law is that of slow_paths.cc ---------------------------------------

void RuntimeImpl::note_left(const jit::Code& from, const char* why, uint32_t exit) noexcept {
  if (AttachedThread* t = here()) t->events.push(left_event(from, why, exit));
}

void RuntimeImpl::note_moved_frame(const Version& to, const jit::Code& from) noexcept {
  if (AttachedThread* t = here()) t->events.push(entered_event(to, from.serial()));
}

}  // namespace uptier::tiering
