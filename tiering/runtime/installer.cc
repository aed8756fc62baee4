#include "tiering/runtime/installer.h"

#include <cassert>
#include <utility>

#include "profile/base/wall.h"
#include "tiering/base/clock.h"
#include "tiering/compile/machine_rates.h"
#include "tiering/control/copy_control.h"
#include "tiering/control/rate_control.h"
#include "tiering/control/trials.h"
#include "tiering/control/value_guards.h"
#include "tiering/model/event_of.h"
#include "tiering/model/thread.h"
#include "tiering/model/version.h"
#include "tiering/runtime/engine.h"
#include "tiering/serve/code_compaction.h"
#include "tiering/serve/in_service.h"

namespace uptier::tiering {

Installer::Role Installer::role_of(const Version& v) {
  if (v.enterable) return Role::kEnterable;
  bool optimized = v.tier == Tier::kOptimized;
  bool observes = optimized && v.copy == Copy::kInstrumented;
  if (v.osr_loop.valid()) return observes ? Role::kLoopCopy : Role::kLoopCode;
  if (observes) return Role::kObserving;
  if (!v.values.empty()) return Role::kForValues;
  if (optimized) return Role::kOptimized;
  return v.copy == Copy::kInstrumented ? Role::kInstrumented : Role::kPlain;
}

// Returns the version in service that calls, or frames at the loop, reach in the place of `v`; null:
// there is none.
const Version* Installer::version_before(const Method& m, const Version& v) const {
  const auto in_service = [](const std::atomic<const Version*>& of) {
    const Version* now = of.load(std::memory_order_relaxed);
    return usable(now) ? now : nullptr;
  };
  const uint32_t loop = v.osr_loop.valid() ? v.osr_loop.index() : 0;
  switch (role_of(v)) {
    case Role::kLoopCode:
      return in_service((v.from_host ? m.shape->osr_from_host : m.shape->osr)[loop]);
    case Role::kLoopCopy: {
      const LoopCopy* copy = loop_copy(m, v.osr_loop);
      return copy == nullptr ? nullptr : in_service(copy->version);
    }
    case Role::kEnterable: return in_service(m.enterable);
    case Role::kInstrumented: return in_service(m.instrumented);
    case Role::kPlain: return in_service(m.plain);
    case Role::kObserving: return in_service(m.optimizing->copy);
    case Role::kForValues:
    case Role::kOptimized: {
      const Version* optimized = in_service(m.optimized);
      return optimized != nullptr ? optimized : in_service(m.plain);
    }
  }
  return nullptr;
}

// All steps that may run out of memory come before threads can find the version.
void Installer::install(Method& m, std::unique_ptr<Version> version) {
  assert(version != nullptr && !version->freed && !version->retired);
  engine_.machine->note_compiled(m, *version);
  engine_.in_service->touch(m);
  version->installed_ns = now_ns();
  Version* v = version.get();
  m.versions.push_back(std::move(version));
  engine_.in_service->note_version(m, *v);
  Event installed = event_of(EventKind::kInstalled, *v, v->installed_ns);
  const Version* before = version_before(m, *v);
  installed.other_version = before == nullptr ? 0 : before->serial;
  engine_.events.emit(installed);
  if (v->tier == Tier::kOptimized) note_optimized(m, *v);
  serve(m, *v);
  engine_.relay->note_changes(1);
  finishes([&] {
    state_lock.known_held();
    engine_.relay->stress_point();
  });
}

// From here on, some calls and iterations run code that does not count.
void Installer::note_optimized(Method& m, const Version& v) {
  m.only_baseline = false;
  if (v.copy != Copy::kPlain) return;
  bool uncounted = v.tallies.words.empty();
  auto note = [&](Method& ran) {
    state_lock.known_held();
    ran.ran_optimized = true;
    ran.ran_uncounted |= uncounted;
  };
  note(m);
  for (uint32_t inlined : v.bodies) note(engine_.method(inlined));
}

void Installer::serve(Method& m, Version& v) {
  Role role = role_of(v);
  // A loop copy is not watched: it is left for the plain code of the loop, which is watched.
  if (role != Role::kEnterable && role != Role::kLoopCopy) engine_.in_service->watch_callees(v);
  switch (role) {
    case Role::kEnterable:
      // Release pairs with the acquire in BaselineFrames::enterable_version().
      return m.enterable.store(&v, std::memory_order_release);
    case Role::kLoopCopy:
      assert(v.osr_loop.index() < m.shape->loop_count);
      return engine_.copies->loops().begin_observing(m, v);
    case Role::kLoopCode:
      assert(v.osr_loop.index() < m.shape->loop_count);
      engine_.in_service->replace_osr(m, v);
      return engine_.copies->loops().watch_frames_of(m, v);
    case Role::kObserving: return engine_.copies->begin_observing_optimized(m, v);
    case Role::kForValues: return engine_.values->install(m, v);
    case Role::kOptimized: return serve_optimized(m, v);
    case Role::kInstrumented: return serve_instrumented(m, v);
    case Role::kPlain: return serve_plain(m, v);
  }
}

// Notifications, which are skipped if memory runs out, come after the version is published.
void Installer::serve_optimized(Method& m, const Version& v) {
  assert(v.tier == Tier::kOptimized && v.copy == Copy::kPlain && v.values.empty());
  m.optimizing.own().versions++;
  engine_.trials->abandon(m);
  const Version* before = m.optimized.load(std::memory_order_relaxed);
  if (before != nullptr && before->general != nullptr) before = before->general;
  if (before == nullptr) before = m.plain.load(std::memory_order_relaxed);
  m.optimized.store(&v, std::memory_order_release);
  finishes([&] {
    state_lock.known_held();
    engine_.copies->loops().watch_frames_of(m, v);
  });
  finishes([&] { engine_.in_service->tell_callers(m); });
  finishes([&] {
    state_lock.known_held();
    engine_.trials->begin(m, before, v);
  });
  engine_.in_service->link_locked(m);
  engine_.copies->retire_optimized_copy(m);
  engine_.in_service->retire_optimized_before(m, v);
  engine_.in_service->retire_baseline(m);
  if (engine_.options.adaptive) finishes([&] { engine_.rates->switch_off(m); });
  if (ValueVersions* values = m.value_versions.made()) values->forced = false;
  finishes([&] {
    state_lock.known_held();
    engine_.values->consider_values(m);
  });
  engine_.in_service->reclaim_locked();
}

void Installer::serve_instrumented(Method& m, const Version& v) {
  assert(m.slab_words.load(std::memory_order_relaxed) != Method::kNotPlanned);
  if (v.code != nullptr) m.shape.made()->loop_ranges = v.code->tables().loop_ranges;
  m.instrumented.store(&v, std::memory_order_release);
  if (engine_.options.adaptive) finishes([&] { engine_.rates->begin_observing(m); });
  engine_.in_service->link_locked(m);
  engine_.in_service->reclaim_locked();
}

void Installer::serve_plain(Method& m, const Version& v) {
  assert(v.tier == Tier::kBaseline && v.copy == Copy::kPlain && !v.enterable);
  m.plain.store(&v, std::memory_order_release);
  engine_.in_service->link_locked(m);
  engine_.in_service->reclaim_locked();
}

}  // namespace uptier::tiering
