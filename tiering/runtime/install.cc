// A new version comes into service.
#include <utility>

#include "profile/base/wall.h"
#include "tiering/base/clock.h"
#include "tiering/model/event_of.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

void RuntimeImpl::install(Method& m, std::unique_ptr<Version> version) {
  put_in_service(m, std::move(version));
  relay_->note_changes(1);
  finishes([&] { relay_->stress_point(); });
}

// What can be refused memory comes before the version can be found. What does not is told that there is
// one, and may go untold.
void RuntimeImpl::put_in_service(Method& m, std::unique_ptr<Version> version) {
  machine_.note_compiled(m, *version);
  in_service_->touch(m);
  version->installed_ns = now_ns();
  Version* v = version.get();
  m.versions.push_back(std::move(version));
  in_service_->note_version(m, *v);
  events_.emit(event_of(EventKind::kInstalled, *v, v->installed_ns));
  if (v->tier == Tier::kOptimized) m.only_baseline = false;
  if (v->tier == Tier::kOptimized && v->copy == Copy::kPlain) {
    m.ran_optimized = true;
    for (uint32_t inlined : v->bodies) method(inlined).ran_optimized = true;
  }
  // Release pairs with the acquire in enterable_version().
  if (v->enterable) return m.enterable.store(v, std::memory_order_release);
  bool observes = v->tier == Tier::kOptimized && v->copy == Copy::kInstrumented;
  // A copy for loops is left for the plain code of its loop, which follows its callees.
  if (!observes || !v->osr_loop.valid()) in_service_->watch_callees(*v);
  if (v->osr_loop.valid()) {
    if (observes) return copies_->loops().begin_observing(m, *v);
    in_service_->replace_osr(m, *v);
    return copies_->loops().watch_frames_of(m, *v);
  }
  if (observes) return copies_->begin_observing_optimized(m, *v);
  if (!v->values.empty()) return values_->install(m, *v);
  if (v->tier == Tier::kOptimized) {
    m.optimizing.own().versions++;
    trials_->abandon(m);
    const Version* before = m.optimized.load(std::memory_order_relaxed);
    if (before != nullptr && before->general != nullptr) before = before->general;
    if (before == nullptr) before = m.plain.load(std::memory_order_relaxed);
    m.optimized.store(v, std::memory_order_release);
    finishes([&] { copies_->loops().watch_frames_of(m, *v); });
    finishes([&] { in_service_->tell_callers(m); });
    finishes([&] { trials_->begin(m, before, *v); });
  } else if (v->copy == Copy::kInstrumented) {
    if (v->code != nullptr) m.shape.made()->loop_ranges = v->code->tables().loop_ranges;
    m.instrumented.store(v, std::memory_order_release);
    if (options_.adaptive) finishes([&] { rates_.begin_observing(m); });
  } else {
    m.plain.store(v, std::memory_order_release);
  }
  in_service_->link_locked(m);
  if (v->tier == Tier::kOptimized) {
    copies_->retire_optimized_copy(m);
    in_service_->retire_optimized_before(m, *v);
    in_service_->retire_baseline(m);
    if (options_.adaptive) finishes([&] { rates_.switch_off(m); });
    if (ValueVersions* values = m.value_versions.made()) values->forced = false;
    finishes([&] { values_->consider_values(m); });
  }
  in_service_->reclaim_locked();
}

}  // namespace uptier::tiering
