#include "tiering/runtime/compilations.h"

#include <mutex>
#include <utility>

#include "jit/code/float_state.h"
#include "profile/base/wall.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/compile_turns.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/compile/requests.h"
#include "tiering/control/eviction.h"
#include "tiering/model/event_of.h"
#include "tiering/model/looking_around.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/imaged_callees.h"
#include "tiering/runtime/installer.h"
#include "tiering/runtime/looks.h"

namespace uptier::tiering {

// If memory runs out, the plan is dropped; it may be requested again.
void Compilations::compile_and_install(const Plan& plan) noexcept {
  jit::StandardFloats floats;
  LookingAround looking(*engine_.looks);
  if (!engine_.is_method(plan.method)) return;
  if (finishes([&] { compile_plan(plan); })) return;
  Method& m = engine_.method(plan.method.index());
  note_no_memory(m);
  HeldState lock(engine_.state_mutex);
  engine_.requests->done(m, plan);
}

void Compilations::note_no_memory(Method& m) noexcept {
  HeldState lock(engine_.state_mutex);
  engine_.events.emit(event_of(EventKind::kRefused, m, "out of memory"));
  finishes([&] { m.last_error.put(out_of_memory("its code").message); });
}

void Compilations::say_turn_refused(Method& m) {
  HeldState lock(engine_.state_mutex);
  m.last_error.put(
      m.info.name +
      ": called while it is being described, by its own `build` or by one that it waits for");
}

// Only a description tells whether a method from an image has something to count.
bool Compilations::counts_nothing(Method& m, const Plan& plan) {
  if (plan.tier != Tier::kBaseline || plan.copy != Copy::kInstrumented) return false;
  return engine_.compiler->describer().describe_imaged(m) &&
         m.slab_words.load(std::memory_order_relaxed) == 0;
}

void Compilations::compile_plan(const Plan& plan) {
  Method& m = engine_.method(plan.method.index());
  if (plan.tier == Tier::kOptimized) describe_imaged_callees(engine_, m);
  CompileTurn turn(engine_.turns, m);
  {
    HeldState lock(engine_.state_mutex);
    if (m.removed) return;
    // This compilation was requested inside the method's own `build`; it may be requested again.
    if (!turn) return engine_.requests->done(m, plan);
  }
  if (counts_nothing(m, plan)) {
    HeldState lock(engine_.state_mutex);
    return engine_.requests->done(m, plan);
  }
  Result<std::unique_ptr<Version>> v = engine_.eviction->make_with_room(m, plan, false);
  HeldState lock(engine_.state_mutex);
  engine_.requests->done(m, plan);
  bool banned = m.guard_banned && plan.tier == Tier::kOptimized;
  if (m.removed || banned) return;
  if (v) return installer_.install(m, std::move(*v));
  m.last_error.put(v.error().message);
  bool refused = v.error().code == ErrorCode::kResourceExhausted;
  EventKind failure = refused ? EventKind::kRefused : EventKind::kFailed;
  engine_.events.emit(event_of(failure, m, *m.last_error));
  // A method runs even if it cannot be optimized. The same request would fail again, unless the
  // failure was a lack of room.
  bool best = plan.tier == Tier::kOptimized && plan.copy == Copy::kPlain;
  if (refused) return;
  if (plan.for_values) {
    m.value_versions.own().banned = true;
  } else if (best) {
    m.optimize_failed = true;
  }
}

}  // namespace uptier::tiering
