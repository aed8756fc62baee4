// The worker: drains the rings, asks the policy, compiles, installs. One thread in the background,
// or the flushing thread itself when workers = 0.
#include <algorithm>
#include <bit>
#include <utility>

#include "profile/base/wall.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

void RuntimeImpl::wake_worker() noexcept {
  if (options_.workers != 0) return worker_.wake();
  finishes([&] {
    jit::StandardFloats floats;
    {
      std::lock_guard lock(state_mutex_);
      drain_locked();
      rates_.tick_if_due();
    }
    run_queue();
    relay_->if_due();
    events_.deliver();
  });
}

// Waits until there is something to do: a note, the next tick while threads run, or code to be laid
// anew.
void RuntimeImpl::await_work() {
  bool ticks = rates_.ticks() || frames_.wait();
  worker_.await_wake(ticks ? 10 : relay_->wait_ms());
}

// Whether the program may soon wait for what a saved profile knows. Without the state mutex, which the
// program wants just now: the file was opened before there was a worker.
bool RuntimeImpl::expects_known() const {
  const ProfileStore* store = saved_.store();
  return options_.tier == TierMode::kAuto && store != nullptr && store->report().runs != 0;
}

void RuntimeImpl::measure_machine() {
  machine_.calibrate(helpers_, *space_, state_mutex_, rates_.measure_clock(state_mutex_));
}

// With a saved profile, measuring waits until what that knows has been made, since the program waits
// for it. What is decided meanwhile goes by what is assumed.
// What memory is refused to is left for the next round.
void RuntimeImpl::run_worker() {
  jit::StandardFloats floats;
  bool measured = !expects_known();
  if (measured) {
    finishes([&] { measure_machine(); });
  } else {
    await_work();
  }
  while (!worker_.stopping()) {
    state_mutex_.give_way();
    finishes([&] {
      std::lock_guard lock(state_mutex_);
      worker_.begin_locked();
      drain_locked();
      if (measured) rates_.tick_if_due();
    });
    finishes([&] { run_queue(); });
    if (!std::exchange(measured, true)) finishes([&] { measure_machine(); });
    finishes([&] { relay_->if_due(); });
    {
      std::lock_guard lock(state_mutex_);
      worker_.rest_locked();
      in_service_->reclaim_locked();
    }
    say_noticed();
    worker_.tell_idle();
    events_.emit_here({.kind = EventKind::kWorkerPaused});
    await_work();
    events_.emit_here({.kind = EventKind::kWorkerResumed});
  }
}

// Takes what is in the rings; returns whether there was anything. All that is there now, since who is
// about to remove a method counts on it, but not for as long as threads go on filling them, which
// may be as fast as this takes: others want the mutex.
bool RuntimeImpl::drain_locked() {
  // A ring is rounded up to a power of two, and no note is shorter.
  auto most = static_cast<uint32_t>(std::bit_ceil(options_.ring_bytes) / sizeof(sampler::Note));
  bool any = false;
  for (auto& t : threads_) {
    any |= t->ring().front() != nullptr;
    drain_thread_locked(*t, most);
  }
  finishes([&] { newer_->want_if_due(); });
  finishes([&] { copies_->loops().call_watched_if_due(); });
  return any;
}

void RuntimeImpl::drain_thread_locked(AttachedThread& t, uint32_t most) {
  for (; most != 0; --most) {
    const sampler::Note* n = t.ring().front();
    if (n == nullptr) return;
    // Counts are what a thread has counted so far: the next note brings those of one that is lost.
    if (!finishes([&] { handle_note(t, *n, t.ring().words(*n)); })) forget_note(*n);
    t.ring().pop();
    relay_->note_changes(1);
    finishes([&] { relay_->stress_point(); });
  }
}

// Memory was refused to what a note is about: it may be asked for again.
void RuntimeImpl::forget_note(const sampler::Note& note) noexcept {
  if (StreamRecorder::is_flush(note.kind)) note_flush_lost();
  Method& m = method(note.method);
  if (note.kind == sampler::NoteKind::kWantCopy) m.copy_asked.store(false);
  Trial* trial = m.optimizing->trial.load(std::memory_order_relaxed);
  if (note.kind == sampler::NoteKind::kTrial && trial != nullptr) trial->tell_again();
  bool of_loop =
      note.kind == sampler::NoteKind::kWantOsr || note.kind == sampler::NoteKind::kWantNewer;
  if (of_loop && note.loop < m.shape->loop_count) m.shape->osr_asked[note.loop].store(false);
}

void RuntimeImpl::handle_note(AttachedThread& t, const sampler::Note& note,
                              std::span<const uint64_t> counts) {
  Method& m = method(note.method);
  if (note.kind == sampler::NoteKind::kTrap) {
    return observer_.streams.take_trap(m, t.number(), note.loop, note.calls);
  }
  if (note.kind == sampler::NoteKind::kTrial) return end_trial(m);
  if (note.kind == sampler::NoteKind::kGuard) return values_->consider_guard(m);
  rates_.note_activity();
  if (note.kind == sampler::NoteKind::kWantNewer) return newer_->want(m, note.loop);
  if (note.kind == sampler::NoteKind::kFrame) return copies_->loops().take_frame(m, note);
  if (note.kind == sampler::NoteKind::kOptimized) {
    return take_optimized(m, t.number(), note, counts);
  }
  sampler::Verdict verdict = observer_.streams.take(m, t.number(), note, counts);
  rates_.note_flushed(m);
  if (m.removed) return;
  if (options_.adaptive) {
    rates_.heed(m, verdict);
    if (!m.flushed->adaptation.resting && note.kind != sampler::NoteKind::kWantCopy)
      rates_.want_copy(m);
  }
  copies_->want_optimized_copy(m);
  values_->consider_values(m);
  if (note.kind == sampler::NoteKind::kWantCopy) {
    // A sample of the rate before, which the thread has not yet seen go, does not end a rest.
    const Adaptation& a = m.flushed->adaptation;
    bool rests = a.resting && a.phase == Adaptation::Phase::kKnown;
    if (rests) return m.copy_asked.store(false, std::memory_order_relaxed);
    // Cheap and wanted soon: ahead of anything that takes longer.
    return requests_.add(m, {.method = m.id, .copy = Copy::kInstrumented}, 1e18);
  }
  consider(m, note);
}

// Worker's side of a trial: all that was wanted has been timed.
void RuntimeImpl::end_trial(Method& m) {
  if (m.removed) return;
  switch (trials_->end(m)) {
    case Trials::Stays::kUnknown: return;
    case Trials::Stays::kNew: in_service_->link_locked(m); return values_->consider_values(m);
    case Trials::Stays::kGuarded: return values_->begin_window(m);
    case Trials::Stays::kBaseline: return back_to_baseline(m);
    case Trials::Stays::kGeneral: return values_->take_back(m, false);
    case Trials::Stays::kOld: return copies_->retire_optimized_copy(m);
  }
}

// The method's first optimized version was slower: it goes back to what it had before, which is made
// again at the next call, and the policy remembers when.
void RuntimeImpl::back_to_baseline(Method& m) {
  m.optimizing.own().slower_calls = std::max<uint64_t>(observer_.advisor.snapshot_of(m).calls, 1);
  exits_->withdraw_code(m);
}

void RuntimeImpl::take_optimized(Method& m, uint32_t thread, const sampler::Note& note,
                                 std::span<const uint64_t> counts) {
  if (copies_->take_optimized(m, thread, note, counts)) consider(m, note);
}

// Asks the policy, and queues what it wants.
void RuntimeImpl::consider(Method& m, const sampler::Note& note) {
  in_service_->touch(m);
  if (options_.tier != TierMode::kAuto || m.is_unstable()) return;
  // A loop whose method the host does not describe.
  bool refused = note.kind == sampler::NoteKind::kFlushIterations && m.failed.load();
  if (refused) return;
  eviction_->make_room_locked(0, false);
  Decision d = observer_.advisor.ask(m, note, system_->snapshot(m));
  if (d.action != Action::kRecompile && d.action != Action::kSpecialize) {
    // Another arrival at this loop may ask again, when more is known.
    if (note.kind == sampler::NoteKind::kWantOsr) m.shape->osr_asked[note.loop].store(false);
    return;
  }
  bool in_host = m.plain.load(std::memory_order_relaxed) == nullptr && m.info.host_entry != nullptr;
  bool osr = d.osr_loop.valid();
  bool again = !osr && usable(m.optimized.load(std::memory_order_relaxed));
  if (again) copies_->follow_drift(m);
  requests_.add(m,
                {.method = m.id,
                 .tier = in_host && !osr ? Tier::kBaseline : Tier::kOptimized,
                 .osr_loop = d.osr_loop,
                 .from_host = in_host && osr,
                 .use_profile = d.action == Action::kSpecialize},
                d.priority);
}

void RuntimeImpl::run_queue() {
  while (!worker_.stopping()) {
    events_.deliver();
    state_mutex_.give_way();
    std::optional<Plan> plan;
    {
      std::lock_guard lock(state_mutex_);
      // What has been flushed meanwhile may be more urgent than what waits.
      drain_locked();
      plan = requests_.pop();
    }
    if (plan) {
      compile_and_install(*plan);
    } else if (!compile_known()) {
      return;
    }
  }
}

// Hands over the counts of every method that the thread has run. Not on a slow path.
void RuntimeImpl::flush_thread_locked(AttachedThread& t, sampler::NoteKind kind) {
  drain_thread_locked(t);
  uint32_t count = methods_.size();
  for (uint32_t i = 0; i < count; ++i) {
    sampler::MethodState& s = t.state(MethodId(i));
    bool exact_only = options_.gap == GapMode::kExact && s.flushes + s.sampled_calls > 0;
    if (s.call_gap == 0 && s.loop_gap == 0 && s.slab == nullptr && !exact_only) continue;
    Method& m = method(i);
    if (m.removed && !m.retired) continue;
    sampler::Note n = make_note(m, t, kind);
    bool only_flush = s.flushes++ == 0;
    const bool whole = finishes([&] {
      std::span<const uint64_t> counts = counters(m, s);
      sampler::Verdict verdict = observer_.streams.take(m, t.number(), n, counts);
      if (options_.adaptive && !worker_.stopping()) rates_.heed(m, verdict);
      flush_optimized_locked(m, t);
      // What many threads call that are gone before their first flush is hot too.
      bool goes = kind == sampler::NoteKind::kFlushFinal && !worker_.stopping();
      if (goes && only_flush && !m.removed) consider(m, n);
    });
    if (!whole) note_flush_lost();
  }
}

}  // namespace uptier::tiering
