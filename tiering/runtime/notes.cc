#include "tiering/runtime/notes.h"

#include <cassert>

#include "jit/code/stubs.h"
#include "sampler/fast_sample.h"
#include "tiering/control/rate_control.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/guest_waits.h"

namespace uptier::tiering {

sampler::Note Notes::make_note(Method& m, AttachedThread& t, sampler::NoteKind kind) noexcept {
  sampler::MethodState& s = t.state(m.id);
  sampler::Note n;
  n.kind = kind;
  n.method = m.id.index();
  n.loop = UINT32_MAX;
  n.calls = engine_.options.gap == GapMode::kExact ? exact_calls(m) : sampler::calls_so_far(s);
  n.sampled_calls = engine_.always_instrumented ? n.calls : s.sampled_calls;
  n.iterations = sampler::iterations_so_far(s);
  n.bursts = s.bursts;
  n.rate = s.rate;
  return n;
}

bool Notes::post(Method& m, AttachedThread& t, sampler::NoteKind kind, uint32_t loop,
                 uint64_t call) noexcept {
  assert(kind != sampler::NoteKind::kFiller);
  assert(kind != sampler::NoteKind::kWantOsr || loop < m.shape->loop_count);
  uint64_t started = t.cost().start(sampler::CostKind::kFlush);
  sampler::MethodState& s = t.state(m.id);
  sampler::Note n = make_note(m, t, kind);
  n.loop = loop;
  if (call != 0) n.calls = call;
  // The current call has not counted anything yet.
  if (call != 0 && engine_.always_instrumented) n.sampled_calls = call - 1;
  ++s.flushes;
  std::span<const uint64_t> counts = counted_words(m, s);
  bool scheduled =
      kind == sampler::NoteKind::kFlushCalls || kind == sampler::NoteKind::kFlushIterations;
  n.ages = scheduled && m.probes->plan().recent && !counts.empty() ? 1 : 0;
  bool delivered = t.ring().push(n, counts);
  if (delivered && n.ages != 0) jit::age_tables(m.probes->plan(), s.slab);
  // Counters that are larger than the ring are not sent; the policy is asked all the same.
  bool pushed = delivered;
  n.ages = 0;
  if (!pushed && counts.size_bytes() > engine_.options.ring_bytes / 2)
    pushed = t.ring().push(n, {});
  if (!pushed) {
    t.flushes_delayed.fetch_add(1, std::memory_order_relaxed);
    if (kind == sampler::NoteKind::kWantCopy) m.copy_asked.store(false);
    if (kind == sampler::NoteKind::kWantOsr) m.shape->osr_asked[loop].store(false);
  } else if (s.slab != nullptr && !m.probes->plan().loops.empty()) {
    jit::rearm_loops(m.probes->plan(), s.slab);
  }
  t.cost().stop(sampler::CostKind::kFlush, started);
  guest_waits_.wake_worker(m);
  return delivered;
}

void Notes::frames_dropped(uint32_t method, SiteId block, uint64_t frames) noexcept {
  assert(frames != 0 && method < engine_.methods.size());
  AttachedThread* t = engine_.here();
  if (t == nullptr) return;
  sampler::Note n;
  n.kind = sampler::NoteKind::kTrap;
  n.method = method;
  n.loop = block;
  n.calls = frames;
  if (!t->ring().push(n, {})) t->flushes_delayed.fetch_add(1, std::memory_order_relaxed);
}

void Notes::brake(Method& m, sampler::Rate in_force) noexcept {
  bool braked = engine_.fast->rate(m.id.index()).brake(in_force, engine_.schedule.ladder);
  if (braked && !engine_.rates->active()) guest_waits_.wake_worker(m);
}

// Returns the calls of all threads so far, from two words that a claimer changes one after the
// other: reads them until no claim was in progress. A claim takes a few instructions, so the number
// of tries is never reached in practice; beyond it, the result is too large by at most one gap, and
// the next note corrects it.
uint64_t Notes::exact_calls(Method& m) const noexcept {
  assert(m.exact != nullptr);  // made with the method
  std::atomic<int32_t>& countdown = engine_.stubs->shared_countdown(m.id);
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

std::span<const uint64_t> counted_words(const Method& m, const sampler::MethodState& s) noexcept {
  if (s.slab == nullptr) return {};
  // A thread has a slab only for methods whose probes are planned.
  assert(m.slab_words.load(std::memory_order_relaxed) != Method::kNotPlanned);
  return {s.slab, m.slab_words.load(std::memory_order_relaxed)};
}

}  // namespace uptier::tiering
