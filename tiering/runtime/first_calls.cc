#include "tiering/runtime/first_calls.h"

#include <cassert>
#include <mutex>
#include <utility>

#include "jit/code/float_state.h"
#include "jit/code/stubs.h"
#include "profile/base/wall.h"
#include "tiering/base/clock.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/compile_turns.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/control/eviction.h"
#include "tiering/model/event_of.h"
#include "tiering/model/looking_around.h"
#include "tiering/model/still_here.h"
#include "tiering/runtime/compilations.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/installer.h"
#include "tiering/runtime/looks.h"
#include "tiering/runtime/warm_start.h"
#include "tiering/saved/known_methods.h"
#include "tiering/saved/saved_profile.h"
#include "tiering/serve/in_service.h"
#include "tiering/serve/retired_hosts.h"

namespace uptier::tiering {

// If memory runs out, the compilation is tried once more: some may have been freed meanwhile.
bool FirstCalls::first_call(Method& m) noexcept {
  const Engine::Delivery delivery(engine_);
  StillHere still(engine_.here());
  for (int tries = 0; tries < 2; ++tries) {
    bool made = false;
    if (finishes([&] { made = make_first(m); })) return made;
  }
  compilations_.note_no_memory(m);
  bool there = false;
  return m.info.host_entry != nullptr && finishes([&] { there = interpret(m); }) && there;
}

bool FirstCalls::compile_known() {
  LookingAround looking(*engine_.looks);
  Method* m = nullptr;
  {
    HeldState lock(engine_.state_mutex);
    m = engine_.known_methods->next(
        [&](Method& known) { return engine_.in_service->current_entry(known) != nullptr; });
  }
  if (m == nullptr) return false;
  warm_start_.prepare(*m, 0);
  // If another thread has the turn, it is calling the method right now, and makes the code.
  CompileTurn turn(engine_.turns, *m, CompileTurn::If::kFree);
  if (!turn) return true;
  bool wanted = !engine_.is_removed(*m) && engine_.in_service->current_entry(*m) == nullptr &&
                !m->failed.load(std::memory_order_relaxed);
  // A failure is not recorded here: the first call will fail as well, and record it.
  if (!wanted || !compiles_first(*m) || !compile_first(*m)) return true;
  HeldState lock(engine_.state_mutex);
  engine_.known_methods->note_made_ahead();
  return true;
}

bool FirstCalls::note_first_call(Method& m) {
  HeldState lock(engine_.state_mutex);
  engine_.known_methods->note_call(m);
  engine_.events.emit(event_of(EventKind::kFirstCall, m, {}, m.first_call));
  return true;
}

bool FirstCalls::make_first(Method& m) {
  jit::StandardFloats floats;
  LookingAround looking(*engine_.looks);
  if (engine_.saved->is_open()) {
    if (engine_.known_methods->claim_listing()) warm_start_.wake_for_known();
    warm_start_.prepare(m, 0);
  }
  CompileTurn turn(engine_.turns, m);
  if (!turn) {  // it may have code already
    bool there = engine_.in_service->current_entry(m) != nullptr;
    if (there || (m.info.host_entry != nullptr && interpret(m))) return true;
    compilations_.say_turn_refused(m);
    return false;
  }
  if (!engine_.is_method(m.id)) return false;  // removed since the call began
  if (engine_.in_service->current_entry(m) != nullptr) return true;
  if (engine_.in_service->relink(m)) return true;
  if (m.failed.load(std::memory_order_relaxed)) return false;
  if (!compiles_first(m)) return interpret(m);
  Status s = compile_first(m);
  if (s) return note_first_call(m);
  bool refused = s.error().code == ErrorCode::kResourceExhausted;
  {
    HeldState lock(engine_.state_mutex);
    m.last_error.put(s.error().message);
    EventKind failure = refused ? EventKind::kRefused : EventKind::kFailed;
    engine_.events.emit(event_of(failure, m, *m.last_error));
    // There may be room at a later call.
    m.failed.store(!refused, std::memory_order_relaxed);
  }
  return m.info.host_entry != nullptr && interpret(m);
}

bool FirstCalls::compiles_first(Method& m) {
  if (m.info.host_entry == nullptr || engine_.options.tier != TierMode::kAuto) return true;
  {
    HeldState lock(engine_.state_mutex);
    if (engine_.in_service->interprets_first_locked(m)) return false;
  }
  return warm_start_.warm(m);
}

bool FirstCalls::interpret(Method& m) {
  assert(m.info.host_entry != nullptr);
  HeldState lock(engine_.state_mutex);
  if (m.host_code == nullptr) {
    Result<std::unique_ptr<Version>> v = engine_.compiler->make_host_thunk_locked(m);
    if (!v) {
      m.last_error.put(v.error().message);
      engine_.events.emit(event_of(EventKind::kRefused, m, *m.last_error));
      return false;
    }
    m.host_code = (*v)->entry;
    (*v)->installed_ns = now_ns();
    engine_.hosts->hold_locked(**v);
    finishes([&] {
      state_lock.known_held();
      engine_.in_service->tell_native_tools(m, **v);
    });
    m.versions.push_back(std::move(*v));
    const Version& thunk = *m.versions.back();
    engine_.events.emit(event_of(EventKind::kInstalled, thunk, thunk.installed_ns));
  }
  engine_.stubs->set_target(m.id, m.host_code);
  return true;
}

bool FirstCalls::is_banned(const Method& m) const {
  HeldState lock(engine_.state_mutex);
  return m.guard_banned;
}

std::vector<Plan> FirstCalls::first_plans(const Method& m) const {
  Plan plain{.method = m.id}, copy{.method = m.id, .copy = Copy::kInstrumented};
  bool excluded = !OptRange::parse(engine_.options.opt_range)->contains(method_hash(m.info));
  if (engine_.options.tier == TierMode::kOptimized && !excluded && !is_banned(m)) {
    return {{.method = m.id, .tier = Tier::kOptimized}, plain};
  }
  return engine_.compiler->describer().copies_first(m) ? std::vector<Plan>{plain, copy}
                                                       : std::vector<Plan>{plain};
}

// All versions are made before any is installed, and the plain copy is installed last: in modes
// that count every call, other threads must not find the plain copy alone.
Status FirstCalls::compile_first(Method& m) {
  std::vector<std::unique_ptr<Version>> made;
  std::vector<Plan> plans = first_plans(m);
  bool hot = warm_start_.warm(m);
  if (hot) {
    plans.insert(plans.begin(), {.method = m.id, .tier = Tier::kOptimized, .use_profile = true});
  }
  assert(!plans.empty());
  for (const Plan& plan : plans) {
    bool counts = !m.has_shape() || m.slab_words.load(std::memory_order_relaxed) != 0;
    if (plan.copy == Copy::kInstrumented && !counts) continue;
    Result<std::unique_ptr<Version>> v = engine_.eviction->make_with_room(m, plan, true);
    if (v) {
      made.push_back(std::move(*v));
      // With an optimized version, baseline code is only a fallback for parts that the compiler
      // cannot handle.
      if (plan.tier == Tier::kOptimized) {
        if (hot) warm_start_.trust_saved(m);
        break;
      }
      continue;
    }
    HeldState lock(engine_.state_mutex);
    m.last_error.put(v.error().message);
    // Everything else falls back to the plain copy.
    if (plan.tier == Tier::kBaseline && plan.copy == Copy::kPlain) return v.error();
    engine_.events.emit(event_of(EventKind::kFailed, m, *m.last_error));
  }
  HeldState lock(engine_.state_mutex);
  assert(!made.empty());
  m.code_made = true;
  for (; !made.empty(); made.pop_back()) installer_.install(m, std::move(made.back()));
  engine_.eviction->ask_again_after_eviction(m);
  return {};
}

}  // namespace uptier::tiering
