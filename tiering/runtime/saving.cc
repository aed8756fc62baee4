#include "tiering/runtime/saving.h"

#include <mutex>
#include <vector>

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

void Saving::flush_caller_locked() {
  if (AttachedThread* t = engine_.here())
    flushes_.flush_thread_locked(*t, sampler::NoteKind::kFlushDemand);
  note_intake_.drain_locked();
}

Status Saving::save_profile() try {
  if (engine_.forked()) return engine_.forked_error();
  if (!engine_.saved->is_open()) return {};
  if (Status s = sources_.check_outside("save_profile"); !s) return s;
  jit::StandardFloats floats;
  const DataSources::Gathering gathering(sources_);
  HeldState lock(engine_.state_mutex);
  flush_caller_locked();
  return save_profile_locked(gathering.data());
} catch (const std::exception&) { return out_of_memory("save_profile"); }

Result<GatherReport> Saving::gather(const std::function<Status(std::span<const Piece>)>& take) try {
  if (engine_.forked()) return engine_.forked_error();
  if (Status s = sources_.check_outside("gather"); !s) return s.error();
  jit::StandardFloats floats;
  const DataSources::Gathering gathering(sources_);
  const profile::Gathered& data = gathering.data();
  profile::Bytes own;
  {
    HeldState lock(engine_.state_mutex);
    flush_caller_locked();
    own =
        engine_.saved->segment(timeline_maker_.timeline_locked(), engine_.stack_sampling->profile(),
                               *engine_.known_methods, engine_.loops_off());
  }
  std::vector<Piece> pieces{{own.data(), own.size()}};
  if (!data.sum.empty()) pieces.insert(pieces.end(), data.pieces.begin(), data.pieces.end());
  GatherReport report{0, pieces.size(), data.sources, data.refused};
  for (const Piece& p : pieces) report.bytes += p.bytes;
  if (Status s = take(pieces); !s) return s.error();
  return report;
} catch (const std::exception&) { return out_of_memory("gather"); }

void Saving::save_at_end() {
  Status saved = walled("save_profile", [&]() -> Status {
    if (!engine_.saved->is_open()) return {};
    const DataSources::Gathering gathering(sources_);
    HeldState lock(engine_.state_mutex);
    return save_profile_locked(gathering.data());
  });
  if (saved) return;
  const bool said = finishes([&] {
    engine_.log.say(LogLevel::kError,
                    "the profile of this process is lost: " + saved.error().message);
  });
  if (!said) engine_.log.say(LogLevel::kError, "the profile of this process is lost");
}

Status Saving::save_profile_locked(const profile::Gathered& data) {
  uint64_t start = now_ns();
  Status s =
      engine_.saved->save(timeline_maker_.timeline_locked(), engine_.stack_sampling->profile(),
                          *engine_.known_methods, engine_.loops_off(), &data);
  const uint64_t end = now_ns();
  Event e{.kind = EventKind::kSaved, .at_ns = end, .duration_ns = end - start};
  if (!s) e.text = s.error().message;
  engine_.events.emit(e);
  return s;
}

}  // namespace uptier::tiering
