// When the profile of this process goes into its file: when somebody asks for it, and at the end.
#include "profile/base/wall.h"
#include "tiering/base/clock.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

Status RuntimeImpl::save_profile() try {
  if (forked()) return forked_error();
  if (Status s = events_.check_change("save_profile"); !s) return s;
  const Delivery delivery(*this);
  if (!saved_.is_open()) return {};
  jit::StandardFloats floats;
  std::lock_guard lock(state_mutex_);
  if (AttachedThread* t = here()) flush_thread_locked(*t, sampler::NoteKind::kFlushDemand);
  drain_locked();
  return save_profile_locked();
} catch (const std::exception&) { return out_of_memory("save_profile"); }

Status RuntimeImpl::save_profile_locked() {
  if (!saved_.is_open()) return {};
  uint64_t start = now_ns();
  Status s = saved_.save(timeline_locked(), known_);
  Event e{.kind = EventKind::kSaved, .duration_ns = now_ns() - start};
  if (!s) e.text = s.error().message;
  events_.emit(e);
  return s;
}

// Nobody is left who could be told, but whoever reads the log.
void RuntimeImpl::save_at_end_locked() {
  Status saved = walled("save_profile", [&] { return save_profile_locked(); });
  if (saved) return;
  const bool said = finishes([&] {
    log_.say(LogLevel::kError, "the profile of this process is lost: " + saved.error().message);
  });
  if (!said) log_.say(LogLevel::kError, "the profile of this process is lost");
}

}  // namespace uptier::tiering
