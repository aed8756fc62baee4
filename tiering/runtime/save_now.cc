// When the profile of this process goes into its file: when somebody asks for it, and at the end.
#include "profile/base/wall.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

Status RuntimeImpl::save_profile() try {
  if (forked()) return forked_error();
  if (!saved_.is_open()) return {};
  jit::StandardFloats floats;
  std::lock_guard lock(state_mutex_);
  if (AttachedThread* t = here()) flush_thread_locked(*t, sampler::NoteKind::kFlushDemand);
  drain_locked();
  return save_profile_locked();
} catch (const std::exception&) { return out_of_memory("save_profile"); }

Status RuntimeImpl::save_profile_locked() {
  return saved_.is_open() ? saved_.save(timeline_locked(), known_) : Status{};
}

// Nobody is left who could be told, but whoever reads the log.
void RuntimeImpl::save_at_end_locked() {
  Status saved = walled("save_profile", [&] { return save_profile_locked(); });
  if (saved) return;
  log_.say(LogLevel::kError, "the profile of this process is lost: " + saved.error().message);
}

}  // namespace uptier::tiering
