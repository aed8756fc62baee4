#include "tiering/runtime/note_intake.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <iterator>

#include "profile/base/wall.h"
#include "tiering/compile/requests.h"
#include "tiering/compile/system.h"
#include "tiering/control/copy_control.h"
#include "tiering/control/eviction.h"
#include "tiering/control/finding.h"
#include "tiering/control/frequent_exits.h"
#include "tiering/control/newer_code.h"
#include "tiering/control/rate_control.h"
#include "tiering/control/stack_sampling.h"
#include "tiering/control/trials.h"
#include "tiering/control/value_guards.h"
#include "tiering/model/thread.h"
#include "tiering/model/trial.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/traps.h"
#include "tiering/serve/code_compaction.h"
#include "tiering/serve/in_service.h"

namespace uptier::tiering {

// Takes all notes that are there now, because a caller that removes a method relies on that. It
// does not continue for as long as threads fill the rings, possibly as fast as it empties them:
// other threads are waiting for the mutex.
bool NoteIntake::drain_locked() {
  // A ring's size is rounded up to a power of two, and no note is shorter than sizeof(Note).
  auto most =
      static_cast<uint32_t>(std::bit_ceil(engine_.options.ring_bytes) / sizeof(sampler::Note));
  return drain_some_locked(most);
}

bool NoteIntake::drain_some_locked(uint32_t most) {
  bool any = false;
  for (auto& t : engine_.threads) {
    any |= t->ring().front() != nullptr;
    drain_thread_locked(*t, most);
  }
  engine_.stack_sampling->drain();
  finishes([&] {
    state_lock.known_held();
    engine_.finding->find(engine_.stack_sampling->take_met());
  });
  finishes([&] {
    state_lock.known_held();
    engine_.newer->want_if_due();
  });
  finishes([&] { engine_.copies->loops().call_watched_if_due(); });
  return any;
}

void NoteIntake::drain_thread_locked(AttachedThread& t, uint32_t most) {
  for (; most != 0; --most) {
    const sampler::Note* n = t.ring().front();
    if (n == nullptr) return;
    assert(n->method < engine_.methods.size());
    // Counts are cumulative: if a note is lost, the next one carries its counts.
    if (!finishes([&] { handle_note(t, *n, t.ring().words(*n)); })) forget_note(*n);
    t.ring().pop();
    engine_.relay->note_changes(1);
    finishes([&] {
      state_lock.known_held();
      engine_.relay->stress_point();
    });
  }
}

void NoteIntake::take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                                std::span<const uint64_t> counts) {
  if (engine_.copies->take_optimized(m, thread, note, counts)) consider(m, note);
}

void NoteIntake::consider(Method& m, const sampler::Note& note) {
  engine_.in_service->touch(m);
  if (engine_.options.tier != TierMode::kAuto || m.is_unstable()) return;
  // A loop of a method that the host refuses to describe.
  bool refused = note.kind == sampler::NoteKind::kFlushIterations && m.failed.load();
  if (refused) return;
  if (!Finding::may_optimize(m)) {
    if (note.kind == sampler::NoteKind::kWantOsr) m.shape->osr_asked[note.loop].store(false);
    return;
  }
  engine_.eviction->make_room_locked(0, false);
  Decision d = engine_.observer->advisor.ask(m, note, engine_.system->snapshot(m));
  if (d.action != Action::kRecompile && d.action != Action::kSpecialize) {
    // Another arrival at this loop may ask again, with more data.
    if (note.kind == sampler::NoteKind::kWantOsr) m.shape->osr_asked[note.loop].store(false);
    return;
  }
  bool in_host = m.plain.load(std::memory_order_relaxed) == nullptr && m.info.host_entry != nullptr;
  bool osr = d.osr_loop.valid();
  bool again = !osr && usable(m.optimized.load(std::memory_order_relaxed));
  if (again) engine_.copies->follow_drift(m);
  if (osr && !in_host) m.optimizing.own().left_behind = {};
  engine_.requests->add(m,
                        {.method = m.id,
                         .tier = in_host && !osr ? Tier::kBaseline : Tier::kOptimized,
                         .osr_loop = d.osr_loop,
                         .from_host = in_host && osr,
                         .use_profile = d.action == Action::kSpecialize},
                        d.priority);
}

void NoteIntake::forget_note(const sampler::Note& note) noexcept {
  if (StreamRecorder::is_flush(note.kind)) engine_.note_flush_lost();
  Method& m = engine_.method(note.method);
  if (note.kind == sampler::NoteKind::kWantCopy) m.copy_asked.store(false);
  Trial* trial = m.optimizing->trial.load(std::memory_order_relaxed);
  if (note.kind == sampler::NoteKind::kTrial && trial != nullptr) trial->tell_again();
  bool of_loop =
      note.kind == sampler::NoteKind::kWantOsr || note.kind == sampler::NoteKind::kWantNewer;
  if (of_loop && note.loop < m.shape->loop_count) m.shape->osr_asked[note.loop].store(false);
}

void NoteIntake::end_trial(Method& m) {
  if (m.removed) return;
  switch (engine_.trials->end(m)) {
    case Trials::Stays::kUnknown: return;
    case Trials::Stays::kNew:
      engine_.in_service->link_locked(m);
      return engine_.values->consider_values(m);
    case Trials::Stays::kGuarded: return engine_.values->begin_window(m);
    case Trials::Stays::kBaseline: return back_to_baseline(m);
    case Trials::Stays::kGeneral: return engine_.values->take_back(m, false);
    case Trials::Stays::kOld: return engine_.copies->retire_optimized_copy(m);
  }
}

void NoteIntake::back_to_baseline(Method& m) {
  m.optimizing.own().slower_calls =
      std::max<uint64_t>(engine_.observer->advisor.snapshot_of(m).calls, 1);
  engine_.exits->withdraw_code(m);
}

// Indexed by NoteKind.
const NoteIntake::Handler NoteIntake::kHandlers[] = {
    {nullptr, false},                          // kFiller: internal to the ring
    {&NoteIntake::take_counts, true},          // kFlushCalls
    {&NoteIntake::take_counts, true},          // kFlushIterations
    {&NoteIntake::take_counts, true},          // kFlushFinal
    {&NoteIntake::take_counts, true},          // kFlushDemand
    {&NoteIntake::take_wish_for_copy, true},   // kWantCopy
    {&NoteIntake::take_counts, true},          // kWantOsr
    {&NoteIntake::take_wish_for_newer, true},  // kWantNewer
    {&NoteIntake::take_frame, true},           // kFrame
    {&NoteIntake::take_copy_counts, true},     // kOptimized
    {&NoteIntake::take_trial, false},          // kTrial
    {&NoteIntake::take_guard, false},          // kGuard
    {&NoteIntake::take_trap, false},           // kTrap
};

void NoteIntake::handle_note(AttachedThread& t, const sampler::Note& note,
                             std::span<const uint64_t> counts) {
  auto kind = static_cast<size_t>(note.kind);
  static_assert(std::size(kHandlers) == static_cast<size_t>(sampler::NoteKind::kTrap) + 1);
  assert(kind != 0 && kind < std::size(kHandlers));
  const Handler& h = kHandlers[kind];
  if (h.activity) engine_.rates->note_activity();
  (this->*h.handle)(engine_.method(note.method), t, note, counts);
}

bool NoteIntake::learn(Method& m, AttachedThread& t, const sampler::Note& note,
                       std::span<const uint64_t> counts) {
  sampler::Verdict verdict = engine_.observer->streams.take(m, t.number(), note, counts);
  engine_.rates->note_flushed(m);
  if (m.removed) return false;
  if (engine_.options.adaptive) {
    engine_.rates->heed(m, verdict);
    bool asks = note.kind == sampler::NoteKind::kWantCopy;
    if (!m.flushed->adaptation.resting && !asks) engine_.rates->want_copy(m);
  }
  engine_.copies->want_optimized_copy(m);
  engine_.values->consider_values(m);
  return true;
}

void NoteIntake::take_counts(Method& m, AttachedThread& t, const sampler::Note& note,
                             std::span<const uint64_t> counts) {
  if (learn(m, t, note, counts)) consider(m, note);
}

// A copy is cheap and wanted soon, so it precedes all longer compilations. A late sample at the old
// rate, of a thread that has not seen the change, does not end a rest.
void NoteIntake::take_wish_for_copy(Method& m, AttachedThread& t, const sampler::Note& note,
                                    std::span<const uint64_t> counts) {
  assert(note.kind == sampler::NoteKind::kWantCopy);
  if (!learn(m, t, note, counts)) return;
  const Adaptation& a = m.flushed->adaptation;
  bool rests = a.resting && a.phase == Adaptation::Phase::kKnown;
  if (rests || !Finding::may_observe(m))
    return m.copy_asked.store(false, std::memory_order_relaxed);
  engine_.requests->add(m, {.method = m.id, .copy = Copy::kInstrumented}, 1e18);
}

void NoteIntake::take_wish_for_newer(Method& m, AttachedThread&, const sampler::Note& note,
                                     std::span<const uint64_t>) {
  assert(note.loop < m.shape->loop_count);
  engine_.newer->want(m, note.loop);
}

void NoteIntake::take_frame(Method& m, AttachedThread&, const sampler::Note& note,
                            std::span<const uint64_t>) {
  engine_.copies->loops().take_frame(m, note);
}

void NoteIntake::take_copy_counts(Method& m, AttachedThread& t, const sampler::Note& note,
                                  std::span<const uint64_t> counts) {
  assert(note.copy != 0);  // set by CopyRules::number
  take_optimized(m, t.number(), note, counts);
}

void NoteIntake::take_trial(Method& m, AttachedThread&, const sampler::Note&,
                            std::span<const uint64_t>) {
  end_trial(m);
}

void NoteIntake::take_guard(Method& m, AttachedThread&, const sampler::Note&,
                            std::span<const uint64_t>) {
  engine_.values->consider_guard(m);
}

void NoteIntake::take_trap(Method& m, AttachedThread& t, const sampler::Note& note,
                           std::span<const uint64_t>) {
  engine_.observer->streams.take_trap(m, t.number(), note.loop, note.calls);
}

}  // namespace uptier::tiering
