#include "tiering/runtime/saving.h"

#include <mutex>

#include "jit/code/float_state.h"
#include "profile/base/wall.h"
#include "tiering/base/clock.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/control/stack_sampling.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/flushes.h"
#include "tiering/runtime/note_intake.h"
#include "tiering/runtime/timeline_maker.h"
#include "tiering/saved/known_methods.h"
#include "tiering/saved/saved_profile.h"

namespace uptier::tiering {

Status Saving::save_profile() try {
  if (engine_.forked()) return engine_.forked_error();
  if (!engine_.saved->is_open()) return {};
  jit::StandardFloats floats;
  HeldState lock(engine_.state_mutex);
  if (AttachedThread* t = engine_.here())
    flushes_.flush_thread_locked(*t, sampler::NoteKind::kFlushDemand);
  note_intake_.drain_locked();
  return save_profile_locked();
} catch (const std::exception&) { return out_of_memory("save_profile"); }

void Saving::save_at_end_locked() {
  Status saved = walled("save_profile", [&] {
    state_lock.known_held();
    return save_profile_locked();
  });
  if (saved) return;
  const bool said = finishes([&] {
    engine_.log.say(LogLevel::kError,
                    "the profile of this process is lost: " + saved.error().message);
  });
  if (!said) engine_.log.say(LogLevel::kError, "the profile of this process is lost");
}

Status Saving::save_profile_locked() {
  if (!engine_.saved->is_open()) return {};
  uint64_t start = now_ns();
  Status s =
      engine_.saved->save(timeline_maker_.timeline_locked(), engine_.stack_sampling->profile(),
                          *engine_.known_methods, engine_.loops_off());
  const uint64_t end = now_ns();
  Event e{.kind = EventKind::kSaved, .at_ns = end, .duration_ns = end - start};
  if (!s) e.text = s.error().message;
  engine_.events.emit(e);
  return s;
}

}  // namespace uptier::tiering
