// Notes: how a thread hands over what it has counted, without a lock.
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

// The calls of all threads so far, from two words that a claimer changes one after the other: read
// until no claim was under way. A claim is a few instructions, so the bound is never met in
// practice; past it the result is too great by at most one gap, and the next note puts it right.
uint64_t RuntimeImpl::exact_calls(Method& m) const noexcept {
  std::atomic<int32_t>& countdown = stubs_->shared_countdown(m.id);
  uint64_t calls = 0;
  for (int tries = 0; tries < 1000; ++tries) {
    uint64_t event = m.exact->event_call.load(std::memory_order_acquire);
    int32_t left = countdown.load(std::memory_order_acquire);
    calls = event - 1 - static_cast<int64_t>(left);
    bool still = !m.exact->claimed.load(std::memory_order_acquire) &&
                 m.exact->event_call.load(std::memory_order_acquire) == event;
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

// `call`: the number of the call at which the note is taken; 0 means now. Returns whether the
// worker will get the counters.
bool RuntimeImpl::post(Method& m, AttachedThread& t, sampler::NoteKind kind, uint32_t loop,
                       uint64_t call) noexcept {
  uint64_t started = t.cost().start(sampler::CostKind::kFlush);
  sampler::MethodState& s = t.state(m.id);
  sampler::Note n = make_note(m, t, kind);
  n.loop = loop;
  if (call != 0) n.calls = call;
  // The call at hand has counted nothing yet.
  if (call != 0 && always_instrumented_) n.sampled_calls = call - 1;
  ++s.flushes;
  std::span<const uint64_t> counts = counters(m, s);
  bool scheduled =
      kind == sampler::NoteKind::kFlushCalls || kind == sampler::NoteKind::kFlushIterations;
  n.ages = scheduled && m.probes->plan().recent && !counts.empty() ? 1 : 0;
  bool delivered = t.ring().push(n, counts);
  if (delivered && n.ages != 0) jit::age_tables(m.probes->plan(), s.slab);
  // Counters that are larger than the ring stay behind; the policy is asked all the same.
  bool pushed = delivered;
  n.ages = 0;
  if (!pushed && counts.size_bytes() > options_.ring_bytes / 2) pushed = t.ring().push(n, {});
  if (!pushed) {
    t.flushes_delayed.fetch_add(1, std::memory_order_relaxed);
    if (kind == sampler::NoteKind::kWantCopy) m.copy_asked.store(false);
    if (kind == sampler::NoteKind::kWantOsr) m.shape->osr_asked[loop].store(false);
  } else if (s.slab != nullptr && !m.probes->plan().loops.empty()) {
    jit::rearm_loops(m.probes->plan(), s.slab);
  }
  t.cost().stop(sampler::CostKind::kFlush, started);
  wake_worker();
  return delivered;
}

// A trap is about to unwind frames of an instrumented copy, all in one block.
void RuntimeImpl::frames_dropped(uint32_t method, SiteId block, uint64_t frames) noexcept {
  AttachedThread* t = here();
  if (t == nullptr) return;
  sampler::Note n;
  n.kind = sampler::NoteKind::kTrap;
  n.method = method;
  n.loop = block;
  n.calls = frames;
  if (!t->ring().push(n, {})) t->flushes_delayed.fetch_add(1, std::memory_order_relaxed);
}

// The thread has taken more samples than it may: the method whose sample it was gets a wider rate.
void RuntimeImpl::brake(Method& m, sampler::Rate in_force) noexcept {
  bool braked = fast_->rate(m.id.index()).brake(in_force, schedule_.ladder);
  if (braked && !rates_.active()) wake_worker();
}

}  // namespace uptier::tiering
