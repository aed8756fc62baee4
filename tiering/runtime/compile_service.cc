// Versions when they are wanted: at a first call, and from the queue (MethodCompiler makes them).
#include <algorithm>

#include "profile/base/wall.h"
#include "tiering/base/clock.h"
#include "tiering/model/event_of.h"
#include "tiering/model/still_here.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

// A call of a method without code in service, on any thread: returns whether it has some now. The
// thread counts as blocked meanwhile, so that what it does not run can make room.
// What memory was refused to is tried once more: there may be some for that.
bool RuntimeImpl::first_call(Method& m) noexcept {
  const Delivery delivery(*this);
  __builtin_unwind_init();  // the method's address, which callers keep in registers, is on the stack
  StillHere still(here());
  for (int tries = 0; tries < 2; ++tries) {
    bool made = false;
    if (finishes([&] { made = make_first(m); })) return made;
  }
  note_no_memory(m);
  bool there = false;
  return m.info.host_entry != nullptr && finishes([&] { there = interpret(m); }) && there;
}

void RuntimeImpl::note_no_memory(Method& m) noexcept {
  std::lock_guard lock(state_mutex_);
  events_.emit(event_of(EventKind::kRefused, m, "out of memory"));
  finishes([&] { m.last_error.put(out_of_memory("its code").message); });
}

bool RuntimeImpl::make_first(Method& m) {
  jit::StandardFloats floats;
  LookingAround looking(*this);
  if (saved_.is_open()) {
    if (known_.claim_listing()) wake_for_known();
    prepare(m, 0);
  }
  CompileTurn turn(turns_, m);
  if (!turn) {  // it may have code already
    bool there = in_service_->current_entry(m) != nullptr;
    if (there || (m.info.host_entry != nullptr && interpret(m))) return true;
    say_turn_refused(m);
    return false;
  }
  if (!is_method(m.id)) return false;  // removed since it was called
  if (in_service_->current_entry(m) != nullptr) return true;
  if (in_service_->relink(m)) return true;
  if (m.failed.load(std::memory_order_relaxed)) return false;
  if (!compiles_first(m)) return interpret(m);
  Status s = compile_first(m);
  if (s) return note_first_call(m);
  bool refused = s.error().code == ErrorCode::kResourceExhausted;
  {
    std::lock_guard lock(state_mutex_);
    m.last_error.put(s.error().message);
    events_.emit(event_of(refused ? EventKind::kRefused : EventKind::kFailed, m, *m.last_error));
    // What was refused for want of room may be had at another call.
    m.failed.store(!refused, std::memory_order_relaxed);
  }
  return m.info.host_entry != nullptr && interpret(m);
}

// Code of the method is wanted by the `build` that describes it, or by one that this waits for.
void RuntimeImpl::say_turn_refused(Method& m) {
  std::lock_guard lock(state_mutex_);
  m.last_error.put(
      m.info.name +
      ": called while it is described, by its own `build` or by one that this waits for");
}

// Returns true.
bool RuntimeImpl::note_first_call(Method& m) {
  std::lock_guard lock(state_mutex_);
  known_.note_call(m);
  events_.emit(event_of(EventKind::kFirstCall, m, {}, m.first_call));
  return true;
}

// Whether a method without code is compiled when it is called: with an interpreter of the host's
// only where that is not to run, or where a saved profile is enough. The caller has its
// turn.
bool RuntimeImpl::compiles_first(Method& m) {
  if (m.info.host_entry == nullptr || options_.tier != TierMode::kAuto) return true;
  {
    std::lock_guard lock(state_mutex_);
    if (in_service_->interprets_first_locked(m)) return false;
  }
  return warm(m);
}

// Sends calls to the host's interpreter. Returns false where there is no room for its thunk.
bool RuntimeImpl::interpret(Method& m) {
  std::lock_guard lock(state_mutex_);
  if (m.host_code == nullptr) {
    Result<std::unique_ptr<Version>> v = compiler_->make_host_thunk_locked(m);
    if (!v) {
      m.last_error.put(v.error().message);
      events_.emit(event_of(EventKind::kRefused, m, *m.last_error));
      return false;
    }
    m.host_code = (*v)->entry;
    (*v)->installed_ns = now_ns();
    hosts_.hold_locked(**v);
    events_.emit(event_of(EventKind::kInstalled, **v, (*v)->installed_ns));
    m.versions.push_back(std::move(*v));
  }
  stubs_->set_target(m.id, m.host_code);
  return true;
}

std::vector<Plan> RuntimeImpl::first_plans(const Method& m) const {
  Plan plain{.method = m.id}, copy{.method = m.id, .copy = Copy::kInstrumented};
  bool excluded = !OptRange::parse(options_.opt_range)->contains(method_hash(m.info));
  if (options_.tier == TierMode::kOptimized && !excluded && !m.guard_banned) {
    return {{.method = m.id, .tier = Tier::kOptimized}, plain};
  }
  return compiler_->describer().copies_first(m) ? std::vector<Plan>{plain, copy}
                                                : std::vector<Plan>{plain};
}

// All versions are made before any is in service, and the plain copy comes last: where no sample
// may be missed, another thread's call must not find it alone.
Status RuntimeImpl::compile_first(Method& m) {
  std::vector<std::unique_ptr<Version>> made;
  std::vector<Plan> plans = first_plans(m);
  bool hot = warm(m);
  if (hot)
    plans.insert(plans.begin(), {.method = m.id, .tier = Tier::kOptimized, .use_profile = true});
  for (const Plan& plan : plans) {
    bool counts = !m.has_shape() || m.slab_words.load(std::memory_order_relaxed) != 0;
    if (plan.copy == Copy::kInstrumented && !counts) continue;
    Result<std::unique_ptr<Version>> v = eviction_->make_with_room(m, plan, true);
    if (v) {
      made.push_back(std::move(*v));
      // With an optimized version the baseline is only for what the compiler could not do.
      if (plan.tier == Tier::kOptimized) {
        if (hot) trust_saved(m);
        break;
      }
      continue;
    }
    std::lock_guard lock(state_mutex_);
    m.last_error.put(v.error().message);
    // The plain copy is what everything else falls back to.
    if (plan.tier == Tier::kBaseline && plan.copy == Copy::kPlain) return v.error();
    events_.emit(event_of(EventKind::kFailed, m, *m.last_error));
  }
  std::lock_guard lock(state_mutex_);
  m.code_made = true;
  for (; !made.empty(); made.pop_back()) install(m, std::move(made.back()));
  eviction_->ask_again_after_eviction(m);
  return {};
}

// Worker's side: one plan from the queue. One that memory is refused to is dropped, and may be asked
// for again.
void RuntimeImpl::compile_and_install(const Plan& plan) noexcept {
  jit::StandardFloats floats;
  LookingAround looking(*this);
  if (!is_method(plan.method)) return;
  if (finishes([&] { compile_plan(plan); })) return;
  Method& m = method(plan.method.index());
  note_no_memory(m);
  std::lock_guard lock(state_mutex_);
  requests_.done(m, plan);
}

void RuntimeImpl::compile_plan(const Plan& plan) {
  Method& m = method(plan.method.index());
  CompileTurn turn(turns_, m);
  {
    std::lock_guard lock(state_mutex_);
    if (m.removed) return;
    if (!turn)
      return requests_.done(m, plan);  // its `build` has led here: it may be asked for again
  }
  Result<std::unique_ptr<Version>> v = eviction_->make_with_room(m, plan, false);
  std::lock_guard lock(state_mutex_);
  requests_.done(m, plan);
  bool banned = m.guard_banned && plan.tier == Tier::kOptimized;
  if (m.removed || banned) return;
  if (v) return install(m, std::move(*v));
  m.last_error.put(v.error().message);
  bool refused = v.error().code == ErrorCode::kResourceExhausted;
  events_.emit(event_of(refused ? EventKind::kRefused : EventKind::kFailed, m, *m.last_error));
  // Failing to optimize is never failing to run. Asking for the same again would fail the same,
  // unless it was room that was wanting.
  bool best = plan.tier == Tier::kOptimized && plan.copy == Copy::kPlain;
  if (refused) return;
  if (plan.for_values) {
    m.value_versions.own().banned = true;
  } else if (best) {
    m.optimize_failed = true;
  }
}

}  // namespace uptier::tiering
