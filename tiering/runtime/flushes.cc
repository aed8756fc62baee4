#include "tiering/runtime/flushes.h"

#include <cassert>
#include <mutex>

#include "jit/code/float_state.h"
#include "profile/base/wall.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/requests.h"
#include "tiering/control/rate_control.h"
#include "tiering/model/optimized_slab.h"
#include "tiering/model/thread.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/note_intake.h"
#include "tiering/runtime/notes.h"
#include "tiering/runtime/optimized_samples.h"
#include "tiering/runtime/say_noticed.h"
#include "tiering/runtime/worker.h"
#include "tiering/runtime/worker_thread.h"
#include "tiering/serve/retired_hosts.h"

namespace uptier::tiering {

void Flushes::flush_thread_locked(AttachedThread& t, sampler::NoteKind kind) {
  assert(kind == sampler::NoteKind::kFlushFinal || kind == sampler::NoteKind::kFlushDemand);
  note_intake_.drain_thread_locked(t);
  const bool outside = t.context().activation == nullptr && !t.stacks.any_suspended();
  uint32_t count = engine_.methods.size();
  for (uint32_t i = 0; i < count; ++i) {
    sampler::MethodState& s = t.state(MethodId(i));
    bool exact_only = engine_.options.gap == GapMode::kExact && s.flushes + s.sampled_calls > 0;
    if (s.call_gap == 0 && s.loop_gap == 0 && s.slab == nullptr && !exact_only) continue;
    Method& m = engine_.method(i);
    if (m.removed && !m.retired) continue;
    sampler::Note n = notes_.make_note(m, t, kind);
    n.settled = outside ? 1 : 0;
    bool only_flush = s.flushes++ == 0;
    const bool whole = finishes([&] {
      state_lock.known_held();
      std::span<const uint64_t> counts = counted_words(m, s);
      sampler::Verdict verdict = engine_.observer->streams.take(m, t.number(), n, counts);
      if (engine_.options.adaptive && !engine_.worker_thread->stopping())
        engine_.rates->heed(m, verdict);
      flush_optimized_locked(m, t);
      // A method called by many threads that each end before their first flush is hot, too.
      bool goes = kind == sampler::NoteKind::kFlushFinal && !engine_.worker_thread->stopping();
      if (goes && only_flush && !m.removed) note_intake_.consider(m, n);
    });
    if (!whole) engine_.note_flush_lost();
  }
}

void Flushes::flush_removed_locked(Method& m, HostUse after) {
  assert(after == HostUse::kOver || after == HostUse::kUntilGone);
  bool over = after == HostUse::kOver;
  auto kind = over ? sampler::NoteKind::kFlushFinal : sampler::NoteKind::kFlushDemand;
  for (auto& t : engine_.threads) {
    if (!over && t.get() != engine_.here()) continue;
    sampler::MethodState& s = t->state(m.id);
    if (s.call_gap == 0 && s.loop_gap == 0 && s.slab == nullptr) continue;
    std::span<const uint64_t> counts = counted_words(m, s);
    sampler::Note n = notes_.make_note(m, *t, kind);
    engine_.observer->streams.take(m, t->number(), n, counts);
    flush_optimized_locked(m, *t);
  }
}

void Flushes::flush_optimized_locked(Method& m, AttachedThread& t) {
  const sampler::MethodState& s = t.state(m.id);
  if (s.optimized_slab == nullptr) return;
  note_intake_.take_optimized(m, t.number(), optimized_samples_.optimized_note(m, t),
                              {s.optimized_slab, slab_words(s.optimized_slab)});
}

void Flushes::flush() {
  if (engine_.forked() || engine_.is_in_build("flush")) return;
  jit::StandardFloats floats;
  finishes([&] { flush_and_wait(); });
  engine_.hosts->tell();
  say_noticed(engine_);
}

void Flushes::flush_and_wait() {
  HeldState lock(engine_.state_mutex);
  if (AttachedThread* t = engine_.here()) {
    flush_thread_locked(*t, sampler::NoteKind::kFlushDemand);
  }
  note_intake_.drain_locked();
  if (engine_.options.workers == 0) {
    lock.unlock();
    return worker_.run_queue();
  }
  WorkerThread& thread = *engine_.worker_thread;
  while (engine_.requests->size() != 0 || !thread.idle_locked()) thread.await_idle(lock);
}

}  // namespace uptier::tiering
