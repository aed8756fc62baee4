#include "tiering/runtime/guest_waits.h"

#include <cassert>
#include <mutex>

#include "profile/base/wall.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/control/copy_control.h"
#include "tiering/control/frequent_exits.h"
#include "tiering/control/rate_control.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/compilations.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/enterable_code.h"
#include "tiering/runtime/first_calls.h"
#include "tiering/runtime/host_loops.h"
#include "tiering/runtime/quiescence.h"
#include "tiering/runtime/worker_wake.h"
#include "tiering/serve/reclaimer.h"

namespace uptier::tiering {

MethodPin::List* GuestWaits::pins() const noexcept {
  AttachedThread* t = engine_.here();
  return t == nullptr ? nullptr : &t->stacks.current().pins;
}

bool GuestWaits::first_call(Method& m) noexcept {
  const MethodPin pin(pins(), m);
  add(Why::kFirstCall);
  return first_calls_.first_call(m);
}

bool GuestWaits::make_enterable(Method& m) noexcept {
  const MethodPin pin(pins(), m);
  add(Why::kEnterable);
  return enterable_code_.make_enterable(m);
}

bool GuestWaits::try_consider_exit(Method& m, uint32_t exit) noexcept {
  if (!engine_.state_mutex.try_lock()) return false;
  HeldState lock(engine_.state_mutex, std::adopt_lock);
  add(Why::kExitLimit);
  finishes([&] {
    state_lock.known_held();
    engine_.rates->note_activity();
    engine_.exits->consider(m, exit);
  });
  return true;
}

bool GuestWaits::know_loops(Method& m) {
  if (m.has_shape()) return true;
  const MethodPin pin(pins(), m);
  add(Why::kHostLoops);
  return host_loops_.know_loops(m);
}

void GuestWaits::report_unknown_loop(Method& m, uint32_t loop, uint32_t loops) {
  add(Why::kErrorText);
  host_loops_.report_unknown_loop(m, loop, loops);
}

void GuestWaits::refuse_frame(Method& m, const Version& v, const jit::SlotLaw& broken) {
  add(Why::kErrorText);
  host_loops_.refuse_frame(m, v, broken);
}

void GuestWaits::back_in_host(AttachedThread& t) noexcept {
  assert(&t == engine_.here());
  if (!engine_.reclaimer->has_limbo()) return;
  add(Why::kReclaim);
  quiescence_.back_in_host(t);
}

void GuestWaits::wake_worker(const Method& m) noexcept {
  if (engine_.worker_wake->has_thread()) return engine_.worker_wake->wake();
  const MethodPin pin(pins(), m);
  add(Why::kWorkerless);
  engine_.worker_wake->wake();
}

void GuestWaits::compile_now(const Method& m, const Plan& plan) noexcept {
  assert(plan.method == m.id);
  const MethodPin pin(pins(), m);
  add(Why::kStress);
  compilations_.compile_and_install(plan);
}

bool GuestWaits::may_optimize(const Method& m) {
  add(Why::kStress);
  HeldState lock(engine_.state_mutex);
  return !m.guard_banned && !m.optimize_failed;
}

bool GuestWaits::make_loop_copy(Method& m, LoopId loop) {
  add(Why::kStress);
  assert(loop.valid());
  HeldState lock(engine_.state_mutex);
  if (!engine_.copies->rules().may_observe(m)) return false;
  own_loop_copy(m, loop);
  return true;
}

}  // namespace uptier::tiering
