#include "tiering/runtime/guest_calls.h"

#include <cassert>

#include "jit/code/float_state.h"
#include "jit/code/stubs.h"
#include "sampler/fast_sample.h"
#include "sampler/schedule.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/call_events.h"
#include "tiering/runtime/counters.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/guest_waits.h"
#include "tiering/runtime/notes.h"
#include "tiering/runtime/optimized_samples.h"
#include "tiering/runtime/traps.h"
#include "tiering/runtime/unattached_calls.h"
#include "tiering/serve/in_service.h"

namespace uptier::tiering {
namespace {

// Says whether no code counts the method's calls, although some should.
bool lacks_copy(const Method& m) {
  return m.slab_words.load(std::memory_order_relaxed) != 0 &&
         !usable(m.instrumented.load(std::memory_order_acquire));
}

}  // namespace

// Never dereference a removed method: its place may be reused concurrently. A method in service
// stays, even if it is removed now, until this thread is quiescent or blocked.
const void* GuestCalls::enter(uint32_t index) noexcept {
  jit::StandardFloats floats;  // for entries that are called without an invoke
  sampler::ThreadContext* c = sampler::current_context();
  const void* code = engine_.methods.serves(index) ? code_for_call(engine_.method(index)) : nullptr;
  if (code == nullptr) return refuse_call(engine_.methods.latest(index));
  Method& m = engine_.method(index);
  if (m.wake_after_call.load(std::memory_order_relaxed)) {
    m.wake_after_call.store(false, std::memory_order_relaxed);
    guest_waits_.wake_worker(m);
  }
  AttachedThread* t = engine_.here();
  if (t != nullptr && t->stop.due()) {
    put_trap(*c, TrapCode::kInterrupted, 0);
    return engine_.routines.trap_exit_at_entry();
  }
  if (t == nullptr) {  // not attached to this runtime: unobserved
    unattached_calls_.count(m, *c);
    const Version* plain = m.plain.load(std::memory_order_acquire);
    // Without counters, the instrumented copy must not run. So in that mode every call comes here.
    bool copied =
        engine_.always_instrumented && m.optimized.load(std::memory_order_acquire) == nullptr;
    return copied && usable(plain) ? plain->entry : code;
  }
  uint64_t started = t->cost().start(sampler::CostKind::kCall);
  sampler::CallEvent e = call_events_.next(m, *t);
  t->cost().stop(sampler::CostKind::kCall, started);
  if (engine_.stress.active(StressKind::kFlip)) {
    if (const void* other = flip_target(m, *t)) return other;
  }
  bool baseline = usable(m.plain.load(std::memory_order_acquire)) &&
                  m.optimized.load(std::memory_order_acquire) == nullptr;
  if (engine_.always_instrumented) ask_until_it_can_count(m, *t);
  if (!baseline && e.sample) {
    if (const void* copy = optimized_samples_.optimized_sample(m, *t)) return copy;
  }
  // If the cell leads to instrumented code, or did when it was read, the slab must exist first. A
  // thread that cannot get a slab comes here at every call and runs plain code.
  if (must_run_plain(m, *t) || (baseline && engine_.always_instrumented && lacks_copy(m))) {
    // An interpreted method never had a copy, so nothing is lost.
    if (baseline) counters_.lose_sample(m, *t);
    const void* plain = run_plain(m, *t);
    return plain != nullptr ? plain : refuse_call(m.id);
  }
  if (!baseline) return e.flush ? best_entry(m, code) : code;
  return e.sample ? run_sample(m, *t, code) : code;
}

const void* GuestCalls::code_for_call(Method& m) noexcept {
  for (int tries = 0; tries < 100; ++tries) {
    if (const void* code = engine_.in_service->current_entry(m)) return code;
    if (!guest_waits_.first_call(m)) return nullptr;
  }
  return nullptr;  // evicted as often as it was made: there are more threads than room
}

bool GuestCalls::must_run_plain(Method& m, AttachedThread& t) noexcept {
  // Acquire pairs with learn_slab(): a shared slab is complete.
  return engine_.always_instrumented && m.slab_words.load(std::memory_order_acquire) != 0 &&
         !counters_.has_slab(m, t);
}

// Code may be evicted at any time, and then the cell may lead to a copy that was just made.
const void* GuestCalls::run_plain(Method& m, AttachedThread& t) noexcept {
  sampler::MethodState& s = t.state(m.id);
  sampler::store_seen(s.call_gap, 1);
  sampler::store_seen(s.call_countdown, 0);
  for (int tries = 0; tries < 100; ++tries) {
    for (auto* version : {&m.optimized, &m.plain}) {
      const Version* v = version->load(std::memory_order_acquire);
      if (usable(v)) return v->entry;
    }
    const void* code = code_for_call(m);
    if (code == nullptr || code == m.host_code.load(std::memory_order_acquire)) return code;
  }
  return nullptr;
}

const void* GuestCalls::refuse_call(MethodId m) noexcept {
  sampler::current_context()->any_method(m.index()).call_countdown = 0;  // every call comes here
  raise_no_code(m);
  return engine_.routines.trap_exit_at_entry();
}

const void* GuestCalls::run_sample(Method& m, AttachedThread& t, const void* plain) noexcept {
  assert(plain != nullptr);
  bool counts = m.slab_words.load(std::memory_order_relaxed) != 0;
  if (counts && !counters_.ready_to_count(m, t)) {
    counters_.lose_sample(m, t);
    return plain;
  }
  sampler::MethodState& s = t.state(m.id);
  assert(!counts || s.slab != nullptr);
  sampler::Rate in_force{s.rate};
  if (sampler::count_sample(s))
    engine_.fast->rate(m.id.index()).widen(in_force, engine_.schedule.ladder);
  if (sampler::spend_sample(t.context())) notes_.brake(m, in_force);
  // A body of one block is counted by its calls.
  return counts ? m.instrumented.load(std::memory_order_acquire)->entry : plain;
}

// The worker may redirect the cell to instrumented code at any time: when interpretation ends, or
// when optimized code is withdrawn. So every call comes here until the thread has a slab.
void GuestCalls::ask_until_it_can_count(Method& m, AttachedThread& t) noexcept {
  bool compiled = usable(m.plain.load(std::memory_order_acquire)) ||
                  m.optimized.load(std::memory_order_acquire) != nullptr;
  // Pairs with learn_slab(): a shared slab is complete.
  bool none_wanted = compiled && m.slab_words.load(std::memory_order_acquire) == 0;
  if (none_wanted || (compiled && counters_.has_slab(m, t))) return;
  sampler::MethodState& s = t.state(m.id);
  sampler::store_seen(s.call_gap, 1);
  sampler::store_seen(s.call_countdown, 0);
}

const void* GuestCalls::best_entry(Method& m, const void* otherwise) const noexcept {
  const void* now = engine_.in_service->current_entry(m);
  return now != nullptr ? now : otherwise;
}

const void* GuestCalls::flip_target(Method& m, AttachedThread& t) noexcept {
  const Version* best = m.optimized.load(std::memory_order_acquire);
  const Version* plain = m.plain.load(std::memory_order_acquire);
  if (best == nullptr || !usable(plain)) return nullptr;
  sampler::MethodState& s = t.state(m.id);
  if (engine_.options.gap != GapMode::kExact) {  // the next call is an event, whatever was due
    sampler::store_seen(s.call_gap, 1);
    sampler::store_seen(s.call_countdown, 0);
  }
  if (!engine_.stress.point(StressKind::kFlip)) return nullptr;
  return engine_.stubs->target(m.id) == best->entry ? plain->entry : best->entry;
}

}  // namespace uptier::tiering
