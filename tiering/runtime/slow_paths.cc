// What compiled code does when a countdown is due: the only code here that runs below guest frames.
//
// The law (4.12): no throw, no lock, no log; no allocation but for a first call, which compiles.
// Each path is idempotent in what it finds: a countdown that another thread has re-armed means "go
// on".
#include <algorithm>

#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {
namespace {

constexpr int32_t kLongestGap = 0x7ffffff0;

// Whether there is nothing that counts the method's calls, and something should.
bool lacks_copy(const Method& m) {
  return m.slab_words.load(std::memory_order_relaxed) != 0 &&
         !usable(m.instrumented.load(std::memory_order_acquire));
}

}  // namespace

AttachedThread* RuntimeImpl::here() const noexcept {
  sampler::ThreadContext* c = sampler::current_context();
  return c->runtime == this ? static_cast<AttachedThread*>(c->owner) : nullptr;
}

// Returns code of the method to run now, made if need be; null when there is none to be had. What
// is returned stays until this thread is quiescent, whatever others evict meanwhile.
const void* RuntimeImpl::code_for_call(Method& m) noexcept {
  for (int tries = 0; tries < 100; ++tries) {
    if (const void* code = in_service_->current_entry(m)) return code;
    if (!first_call(m)) return nullptr;
  }
  return nullptr;  // taken away as often as it was made: more threads than room
}

void RuntimeImpl::raise_no_code(MethodId m) noexcept {
  sampler::ThreadContext& c = *sampler::current_context();
  put_trap(c, TrapCode::kNoCode, 0);
  c.trap_method = m.number() + 1;
}

// A call of a method that has no code traps.
const void* RuntimeImpl::refuse_call(MethodId m) noexcept {
  sampler::current_context()->any_method(m.index()).call_countdown = 0;  // every call comes here
  raise_no_code(m);
  return routines_.trap_exit_at_entry();
}

// Of a method that was removed nothing is read: another thread may be giving its place away. One
// that is in service stays, even if it is removed now, until this thread is quiescent or blocked.
const void* RuntimeImpl::enter(uint32_t index) noexcept {
  jit::StandardFloats floats;  // of an entry that is called without an invoke
  sampler::ThreadContext* c = sampler::current_context();
  const void* code = methods_.serves(index) ? code_for_call(method(index)) : nullptr;
  if (code == nullptr) return refuse_call(methods_.latest(index));
  Method& m = method(index);
  if (m.wake_after_call.load(std::memory_order_relaxed)) {
    m.wake_after_call.store(false, std::memory_order_relaxed);
    wake_worker();
  }
  AttachedThread* t = here();
  if (t != nullptr && t->stop.due()) {
    put_trap(*c, TrapCode::kInterrupted, 0);
    return routines_.trap_exit_at_entry();
  }
  if (t == nullptr) {  // not attached to this runtime: unobserved
    count_unattached(m, *c);
    const Version* plain = m.plain.load(std::memory_order_acquire);
    // Without counters the instrumented copy is not to be run; so every call comes here.
    bool copied = always_instrumented_ && m.optimized.load(std::memory_order_acquire) == nullptr;
    return copied && usable(plain) ? plain->entry : code;
  }
  uint64_t started = t->cost().start(sampler::CostKind::kCall);
  sampler::CallEvent e = next_call_event(m, *t);
  t->cost().stop(sampler::CostKind::kCall, started);
  if (stress_.active(StressKind::kFlip)) {
    if (const void* other = flip_target(m, *t)) return other;
  }
  bool baseline = usable(m.plain.load(std::memory_order_acquire)) &&
                  m.optimized.load(std::memory_order_acquire) == nullptr;
  if (always_instrumented_) ask_until_it_can_count(m, *t);
  if (!baseline && e.sample) {
    if (const void* copy = optimized_sample(m, *t)) return copy;
  }
  // Where the cell leads to instrumented code, or led when it was read, the slab must be there
  // before; a thread that is refused one comes here at every call and runs plain.
  if (must_run_plain(m, *t) || (baseline && always_instrumented_ && lacks_copy(m))) {
    // An interpreted method has had no copy from its first compilation on.
    if (baseline) lose_sample(m, *t);
    const void* plain = run_plain(m, *t);
    return plain != nullptr ? plain : refuse_call(m.id);
  }
  if (!baseline) return e.flush ? best_entry(m, code) : code;
  return e.sample ? run_sample(m, *t, code) : code;
}

// A call that is to be observed. `plain`: where it goes if it cannot be.
const void* RuntimeImpl::run_sample(Method& m, AttachedThread& t, const void* plain) noexcept {
  bool counts = m.slab_words.load(std::memory_order_relaxed) != 0;
  if (counts && !ready_to_count(m, t)) {
    lose_sample(m, t);
    return plain;
  }
  sampler::MethodState& s = t.state(m.id);
  sampler::Rate in_force{s.rate};
  if (sampler::count_sample(s)) fast_->rate(m.id.index()).widen(in_force, schedule_.ladder);
  if (sampler::spend_sample(t.context())) brake(m, in_force);
  // A body of one block counts by being called.
  return counts ? m.instrumented.load(std::memory_order_acquire)->entry : plain;
}

// The worker may lead the cell to instrumented code at any time: from the interpreter, or where
// optimized code is withdrawn. So every call comes here until the thread has a slab.
void RuntimeImpl::ask_until_it_can_count(Method& m, AttachedThread& t) noexcept {
  bool compiled = usable(m.plain.load(std::memory_order_acquire)) ||
                  m.optimized.load(std::memory_order_acquire) != nullptr;
  // Pairs with learn_slab(): a slab that threads share is there.
  bool none_wanted = compiled && m.slab_words.load(std::memory_order_acquire) == 0;
  if (none_wanted || (compiled && has_slab(m, t))) return;
  sampler::MethodState& s = t.state(m.id);
  s.call_gap = 1;
  s.call_countdown = 0;
}

// Whether all calls are counted, and the thread cannot: what counts is not to be run.
bool RuntimeImpl::must_run_plain(Method& m, AttachedThread& t) noexcept {
  // Acquire pairs with learn_slab(): a slab that threads share is there.
  return always_instrumented_ && m.slab_words.load(std::memory_order_acquire) != 0 &&
         !has_slab(m, t);
}

// Returns code that does not count, made if need be; null when there is none to be had. Others may
// evict what there is at any time, and then the cell may lead to a copy that has just been made.
const void* RuntimeImpl::run_plain(Method& m, AttachedThread& t) noexcept {
  sampler::MethodState& s = t.state(m.id);
  s.call_gap = 1;
  s.call_countdown = 0;
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

// A flush may have installed something better (workers = 0): the call that brought it profits.
const void* RuntimeImpl::best_entry(Method& m, const void* otherwise) const noexcept {
  const void* now = in_service_->current_entry(m);
  return now != nullptr ? now : otherwise;
}

// Handles the event that is due at a call, its flush included.
sampler::CallEvent RuntimeImpl::next_call_event(Method& m, AttachedThread& t) noexcept {
  sampler::MethodState& s = t.state(m.id);
  uint64_t& random = t.context().random;
  // Where the cell leads to instrumented code, or to optimized code, there is nothing to sample.
  bool all_seen = always_instrumented_ && options_.gap != GapMode::kExact;
  bool best = m.optimized.load(std::memory_order_relaxed) != nullptr;
  bool seen = all_seen || (best && !awaits_optimized(m));
  const sampler::Schedule& schedule = seen ? counting_ : schedule_;
  if (options_.gap != GapMode::kExact) {
    sampler::MethodRate& method_rate = fast_->rate(m.id.index());
    // A method that is new to a thread which may take no more begins wider.
    bool late = s.rate == 0 && sampler::limit_reached(t.context());
    if (late) method_rate.brake(method_rate.load(), schedule_.ladder);
    sampler::Rate rate = rate_of(m);
    sampler::CallEvent e = sampler::call_event(s, schedule, rate, random);
    if (!e.flush) return e;
    bool delivered = post(m, t, sampler::NoteKind::kFlushCalls, UINT32_MAX, e.call);
    if (delivered && e.change) sampler::commit_rate(s, schedule, rate, random, e);
    return e;
  }

  // One countdown for all threads: the first to claim the due event handles it and re-arms; the
  // others have nothing to do. event_call - 1 - countdown is the number of calls so far.
  std::atomic<int32_t>& countdown = stubs_->shared_countdown(m.id);
  if (countdown.load(std::memory_order_relaxed) >= 0) return {};
  ExactCalls& x = *m.exact;
  // Acquire pairs with the release below: the last claimer's plan is seen.
  if (x.claimed.exchange(true, std::memory_order_acquire)) return {};
  sampler::CallEvent all;
  if (countdown.load(std::memory_order_relaxed) < 0) {
    int32_t left;
    do {
      uint64_t call = x.event_call.load(std::memory_order_relaxed);
      if (call == 1) {
        x.plan = {schedule.calls.draw(random), sampler::setting(schedule.flush_first)};
      }
      sampler::CallEvent e = x.plan.take(call, schedule, random);
      all = {call, all.sample || e.sample, all.flush || e.flush};
      uint64_t next = x.plan.next(schedule);
      auto gap = static_cast<int32_t>(std::min<uint64_t>(next - call, kLongestGap));
      x.event_call.store(call + gap, std::memory_order_relaxed);
      left = countdown.fetch_add(gap, std::memory_order_relaxed) + gap;
    } while (left < 0);
  }
  x.claimed.store(false, std::memory_order_release);
  if (all.flush) post(m, t, sampler::NoteKind::kFlushCalls, UINT32_MAX, all.call);
  return all;
}

// Applies the stress plan at a call: where the cell leads to one of two versions, goes to the
// other.
const void* RuntimeImpl::flip_target(Method& m, AttachedThread& t) noexcept {
  const Version* best = m.optimized.load(std::memory_order_acquire);
  const Version* plain = m.plain.load(std::memory_order_acquire);
  if (best == nullptr || !usable(plain)) return nullptr;
  sampler::MethodState& s = t.state(m.id);
  if (options_.gap != GapMode::kExact) {  // the next call is an event, whatever was due
    s.call_gap = 1;
    s.call_countdown = 0;
  }
  if (!stress_.point(StressKind::kFlip)) return nullptr;
  return stubs_->target(m.id) == best->entry ? plain->entry : best->entry;
}

// A sample was due and could not be taken; asks for the copy that it needs.
void RuntimeImpl::lose_sample(Method& m, AttachedThread& t) noexcept {
  t.samples_without_copy.fetch_add(1, std::memory_order_relaxed);
  bool made = usable(m.instrumented.load(std::memory_order_acquire));
  bool can_make = m.slab_words.load(std::memory_order_relaxed) != 0;
  if (!made && can_make && !m.copy_asked.exchange(true, std::memory_order_relaxed)) {
    post(m, t, sampler::NoteKind::kWantCopy, UINT32_MAX);
  }
}

// Says whether the instrumented copy can be entered by this thread.
bool RuntimeImpl::ready_to_count(Method& m, AttachedThread& t) noexcept {
  return usable(m.instrumented.load(std::memory_order_acquire)) && has_slab(m, t);
}

// Says whether the thread has counters for a method; takes them if it has not.
bool RuntimeImpl::has_slab(Method& m, AttachedThread& t) noexcept {
  sampler::MethodState& s = t.state(m.id);
  if (s.slab != nullptr) return true;
  s.slab = m.shape->shared;
  if (s.slab == nullptr) s.slab = t.slabs().take(m.slab_words.load(std::memory_order_relaxed));
  if (s.slab == nullptr) t.slabs_refused.fetch_add(1, std::memory_order_relaxed);
  return s.slab != nullptr;
}

}  // namespace uptier::tiering
