// What compiled code does when a countdown is due: the only code here that runs below guest frames.
//
// The law (4.12): no throw, no lock, no log; no allocation but for a first call, which compiles.
// Each path is idempotent in what it finds: a countdown that another thread has re-armed means "go
// on".
#include <algorithm>

#include "tiering/runtime_impl.h"

namespace uptier::tiering {
namespace {

constexpr int32_t kFarAway = 0x7ffffff0;

// Where a frame that has just been checked at a loop header goes on in the same code.
const void* continue_at(const jit::Code& code, uint32_t loop) {
  return code.at(code.tables().loops[loop].continue_offset);
}

// Where a frame of the other copy comes in. The version must be in service.
const void* arrive_at(const Version& v, uint32_t loop) {
  return v.code->at(v.code->tables().loops[loop].arrive_offset);
}

// Makes the next arrival at a loop header an event again, in whichever copy it happens.
void make_next_arrival_due(sampler::MethodState& s, bool instrumented) {
  s.iterations = sampler::iterations_so_far(s);
  s.loop_gap = s.loop_countdown = instrumented ? -1 : 1;
}

}  // namespace

AttachedThread* RuntimeImpl::here() const noexcept {
  sampler::ThreadContext* c = sampler::current_context();
  return c->runtime == this ? static_cast<AttachedThread*>(c->owner) : nullptr;
}

// Returns where a plain call goes now; null before the first compilation.
const void* RuntimeImpl::current_entry(Method& m) const noexcept {
  const void* target = stubs_->target(m.id);
  return target == stubs_->tail(m.id) ? nullptr : target;
}

// Returns code of the method to run now, made if need be; null when there is none to be had. What
// is returned stays until this thread is quiescent, whatever others evict meanwhile.
const void* RuntimeImpl::code_for_call(Method& m) noexcept {
  for (int tries = 0; tries < 100; ++tries) {
    if (const void* code = current_entry(m)) return code;
    if (!first_call(m)) return nullptr;
  }
  return nullptr;  // taken away as often as it was made: more threads than room
}

const void* RuntimeImpl::enter(uint32_t index) noexcept {
  Method& m = method(index);
  sampler::ThreadContext* c = sampler::current_context();
  const void* code = code_for_call(m);
  if (code == nullptr) {
    c->method(index).call_countdown = 0;  // every call comes here
    c->pending_trap = static_cast<uint32_t>(TrapCode::kHost);
    c->trap_detail = 0;
    c->trap_pc = 0;
    return routines_.trap_exit_at_entry();
  }
  if (m.wake_after_call.load(std::memory_order_relaxed)) {
    m.wake_after_call.store(false, std::memory_order_relaxed);
    wake_worker();
  }
  AttachedThread* t = here();
  if (t == nullptr) {  // not attached to this runtime: unobserved
    c->method(index).call_countdown = kFarAway;
    return code;
  }
  sampler::CallEvent e = next_call_event(m, *t);
  if (e.flush) post(m, *t, sampler::NoteKind::kFlushCalls, UINT32_MAX, e.call);
  if (stress_.active(StressKind::kFlip)) {
    if (const void* other = flip_target(m, *t)) return other;
  }
  const Version* plain = m.plain.load(std::memory_order_acquire);
  bool baseline = plain != nullptr && m.optimized.load(std::memory_order_acquire) == nullptr;
  if (!baseline) return e.flush ? best_entry(m, code) : code;
  if (e.sample) {
    if (ready_to_count(m, *t)) {
      c->method(index).sampled_calls++;
      return m.instrumented.load(std::memory_order_acquire)->entry;
    }
    lose_sample(m, *t);
  }
  // Where the cell leads to instrumented code, the slab must be there before; a thread that is
  // refused one comes here at every call and runs plain.
  if (always_instrumented_ && !ready_to_count(m, *t)) return run_plain(m, *t);
  return code;
}

const void* RuntimeImpl::run_plain(Method& m, AttachedThread& t) noexcept {
  sampler::MethodState& s = t.state(m.id);
  s.call_gap = 1;
  s.call_countdown = 0;
  if (!usable(m.plain.load(std::memory_order_acquire))) code_for_call(m);
  return m.plain.load(std::memory_order_acquire)->entry;
}

// A flush may have installed something better (workers = 0): the call that brought it profits.
const void* RuntimeImpl::best_entry(Method& m, const void* otherwise) const noexcept {
  const void* now = current_entry(m);
  return now != nullptr ? now : otherwise;
}

sampler::CallEvent RuntimeImpl::next_call_event(Method& m, AttachedThread& t) noexcept {
  sampler::MethodState& s = t.state(m.id);
  uint64_t& random = t.context().random;
  bool best = m.optimized.load(std::memory_order_relaxed) != nullptr;
  const sampler::Schedule& schedule = best ? counting_ : schedule_;
  if (options_.gap != GapMode::kExact) return sampler::call_event(s, schedule, random);

  // One countdown for all threads: the first to claim the due event handles it and re-arms; the
  // others have nothing to do. event_call - 1 - countdown is the number of calls so far.
  std::atomic<int32_t>& countdown = stubs_->shared_countdown(m.id);
  if (countdown.load(std::memory_order_relaxed) >= 0) return {};
  // Acquire pairs with the release below: the last claimer's plan is seen.
  if (m.event_claimed.exchange(true, std::memory_order_acquire)) return {};
  sampler::CallEvent all;
  if (countdown.load(std::memory_order_relaxed) < 0) {
    int32_t left;
    do {
      uint64_t call = m.event_call.load(std::memory_order_relaxed);
      if (call == 1) m.event_plan = {schedule.calls.draw(random), schedule.flush_first};
      sampler::CallEvent e = m.event_plan.take(call, schedule, random);
      all = {call, all.sample || e.sample, all.flush || e.flush};
      uint64_t next = m.event_plan.next(schedule);
      auto gap = static_cast<int32_t>(std::min<uint64_t>(next - call, kFarAway));
      m.event_call.store(call + gap, std::memory_order_relaxed);
      left = countdown.fetch_add(gap, std::memory_order_relaxed) + gap;
    } while (left < 0);
  }
  m.event_claimed.store(false, std::memory_order_release);
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
  if (!usable(m.instrumented.load(std::memory_order_acquire))) return false;
  sampler::MethodState& s = t.state(m.id);
  if (s.slab != nullptr) return true;
  s.slab = t.slabs().take(m.slab_words.load(std::memory_order_relaxed));
  if (s.slab == nullptr) t.slabs_refused.fetch_add(1, std::memory_order_relaxed);
  return s.slab != nullptr;
}

const void* RuntimeImpl::loop_plain(uint32_t index, uint32_t loop, const void* pc) noexcept {
  Method& m = method(index);
  const void* go_on = continue_at(*space_->owner_of(pc), loop);
  AttachedThread* t = here();
  if (t == nullptr) {
    sampler::current_context()->method(index).loop_countdown = kFarAway;
    return go_on;
  }
  sampler::MethodState& s = t->state(m.id);
  bool can_count = schedule_.sample_calls && ready_to_count(m, *t);
  sampler::LoopEvent e = sampler::loop_event_plain(s, schedule_, can_count, t->context().random);
  if (e.flush) post(m, *t, sampler::NoteKind::kFlushIterations, loop);
  if (const void* better = osr_target(m, loop, *t)) return better;
  const void* next = go_on;
  if (e.due && !e.instrumented) lose_sample(m, *t);
  if (e.instrumented) next = arrive_at(*m.instrumented.load(std::memory_order_acquire), loop);
  return stress_target(m, loop, *t, e.instrumented, next);
}

const void* RuntimeImpl::loop_instrumented(uint32_t index, uint32_t loop, const void* pc) noexcept {
  Method& m = method(index);
  const void* go_on = continue_at(*space_->owner_of(pc), loop);
  AttachedThread* t = here();
  if (t == nullptr) return go_on;
  sampler::MethodState& s = t->state(m.id);
  sampler::LoopEvent e =
      sampler::loop_event_instrumented(s, schedule_, ready_to_count(m, *t), t->context().random);
  if (e.flush) post(m, *t, sampler::NoteKind::kFlushIterations, loop);
  if (const void* better = osr_target(m, loop, *t)) return better;
  const Version* plain = m.plain.load(std::memory_order_acquire);
  bool leaves = !e.instrumented && usable(plain);
  const void* next = leaves ? arrive_at(*plain, loop) : go_on;
  return stress_target(m, loop, *t, !leaves, next);
}

// Returns the OSR entry of optimized code for a loop if there is one and the stack has room for its
// frame; asks for one when the method is optimized already and this frame is left behind.
const void* RuntimeImpl::osr_target(Method& m, uint32_t loop, AttachedThread& t) noexcept {
  if (options_.tier != TierMode::kAuto) return nullptr;
  const Version* v = m.osr[loop].load(std::memory_order_acquire);
  if (v == nullptr) {
    bool left_behind = m.optimized.load(std::memory_order_relaxed) != nullptr;
    if (left_behind && !m.osr_asked[loop].exchange(true, std::memory_order_relaxed)) {
      post(m, t, sampler::NoteKind::kWantOsr, loop);
    }
    return nullptr;
  }
  auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  if (here < t.context().stack_limit + v->code->tables().frame_size) return nullptr;
  m.osr_entries.fetch_add(1, std::memory_order_relaxed);
  return v->entry;
}

// Applies the stress plan at an arrival: `instrumented` and `otherwise` say where the schedule
// would have gone on.
const void* RuntimeImpl::stress_target(Method& m, uint32_t loop, AttachedThread& t,
                                       bool instrumented, const void* otherwise) noexcept {
  bool osr = stress_.active(StressKind::kOsr);
  bool copy = stress_.active(StressKind::kCopy);
  if (!osr && !copy) return otherwise;
  if (osr && stress_.point(StressKind::kOsr)) {
    if (m.osr[loop].load(std::memory_order_acquire) == nullptr) {
      compile_and_install({.method = m.id, .tier = Tier::kOptimized, .osr_loop = LoopId(loop)});
    }
    if (const Version* v = m.osr[loop].load(std::memory_order_acquire)) {
      m.osr_entries.fetch_add(1, std::memory_order_relaxed);
      return v->entry;
    }
  }
  const Version* other = (instrumented ? m.plain : m.instrumented).load(std::memory_order_acquire);
  if (copy && stress_.point(StressKind::kCopy) && usable(other) &&
      (instrumented || ready_to_count(m, t))) {
    instrumented = !instrumented;
    otherwise = arrive_at(*other, loop);
  }
  make_next_arrival_due(t.state(m.id), instrumented);
  return otherwise;
}

// The calls of all threads so far, from two words that a claimer changes one after the other: read
// until no claim was under way. A claim is a few instructions, so the bound is never met in
// practice; past it the result is too great by at most one gap, and the next note puts it right.
uint64_t RuntimeImpl::exact_calls(Method& m) const noexcept {
  std::atomic<int32_t>& countdown = stubs_->shared_countdown(m.id);
  uint64_t calls = 0;
  for (int tries = 0; tries < 1000; ++tries) {
    uint64_t event = m.event_call.load(std::memory_order_acquire);
    int32_t left = countdown.load(std::memory_order_acquire);
    calls = event - 1 - static_cast<int64_t>(left);
    bool still = !m.event_claimed.load(std::memory_order_acquire) &&
                 m.event_call.load(std::memory_order_acquire) == event;
    if (still) break;
  }
  return calls;
}

// What a thread has counted of a method; empty before it has a slab.
std::span<const uint64_t> RuntimeImpl::counters(const Method& m,
                                                const sampler::MethodState& s) noexcept {
  if (s.slab == nullptr) return {};
  return {s.slab, m.slab_words.load(std::memory_order_relaxed)};
}

sampler::Note RuntimeImpl::make_note(Method& m, AttachedThread& t,
                                     sampler::NoteKind kind) noexcept {
  sampler::MethodState& s = t.state(m.id);
  sampler::Note n;
  n.kind = kind;
  n.method = m.id.index();
  n.loop = UINT32_MAX;
  n.calls = options_.gap == GapMode::kExact ? exact_calls(m) : sampler::calls_so_far(s);
  n.sampled_calls = always_instrumented_ ? n.calls : s.sampled_calls;
  n.iterations = sampler::iterations_so_far(s);
  n.bursts = s.bursts;
  n.rate = s.rate;
  return n;
}

// `call`: the number of the call at which the note is taken; 0 means now.
void RuntimeImpl::post(Method& m, AttachedThread& t, sampler::NoteKind kind, uint32_t loop,
                       uint64_t call) noexcept {
  sampler::MethodState& s = t.state(m.id);
  sampler::Note n = make_note(m, t, kind);
  n.loop = loop;
  if (call != 0) n.calls = call;
  ++s.flushes;
  std::span<const uint64_t> counts = counters(m, s);
  bool pushed = t.ring().push(n, counts);
  // Counters that are larger than the ring stay behind; the policy is asked all the same.
  if (!pushed && counts.size_bytes() > options_.ring_bytes / 2) pushed = t.ring().push(n, {});
  if (!pushed) {
    t.flushes_delayed.fetch_add(1, std::memory_order_relaxed);
    if (kind == sampler::NoteKind::kWantCopy) m.copy_asked.store(false);
    if (kind == sampler::NoteKind::kWantOsr) m.osr_asked[loop].store(false);
  }
  wake_worker();
}

}  // namespace uptier::tiering
