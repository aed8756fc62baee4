#include "tiering/runtime/call_events.h"

#include <algorithm>
#include <cassert>

#include "jit/code/stubs.h"
#include "sampler/fast_sample.h"
#include "tiering/model/thread.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/notes.h"
#include "tiering/runtime/optimized_samples.h"

namespace uptier::tiering {
namespace {

constexpr int32_t kLongestGap = 0x7ffffff0;

}  // namespace

sampler::CallEvent CallEvents::next(Method& m, AttachedThread& t) noexcept {
  sampler::MethodState& s = t.state(m.id);
  uint64_t& random = t.context().random;
  // If the cell leads to instrumented or optimized code, calls need no samples.
  bool all_seen = engine_.always_instrumented && engine_.options.gap != GapMode::kExact;
  bool best = m.optimized.load(std::memory_order_relaxed) != nullptr;
  bool seen = all_seen || (best && !optimized_samples_.awaits_optimized(m));
  const sampler::Schedule& schedule = seen ? engine_.counting : engine_.schedule;
  if (engine_.options.gap != GapMode::kExact) {
    sampler::MethodRate& method_rate = engine_.fast->rate(m.id.index());
    // If a thread has used up its allowance, a method that is new to it begins at a wider rate.
    bool late = s.rate == 0 && sampler::limit_reached(t.context());
    if (late) method_rate.brake(method_rate.load(), engine_.schedule.ladder);
    sampler::Rate rate = optimized_samples_.rate_of(m);
    sampler::CallEvent e = sampler::call_event(s, schedule, rate, random);
    if (!e.flush) return e;
    bool delivered = notes_.post(m, t, sampler::NoteKind::kFlushCalls, UINT32_MAX, e.call);
    if (delivered && e.change) sampler::commit_rate(s, schedule, rate, random, e);
    return e;
  }

  // One countdown for all threads: the first thread to claim the due event handles it and re-arms.
  // The others have nothing to do. event_call - 1 - countdown is the number of calls so far.
  std::atomic<int32_t>& countdown = engine_.stubs->shared_countdown(m.id);
  if (countdown.load(std::memory_order_relaxed) >= 0) return {};
  assert(m.exact != nullptr);  // made with the method
  ExactCalls& x = *m.exact;
  // Acquire pairs with the release below: this thread sees the last claimer's plan.
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
      assert(next > call);  // otherwise the countdown would never be re-armed
      auto gap = static_cast<int32_t>(std::min<uint64_t>(next - call, kLongestGap));
      x.event_call.store(call + gap, std::memory_order_relaxed);
      left = countdown.fetch_add(gap, std::memory_order_relaxed) + gap;
    } while (left < 0);
  }
  assert(x.claimed.load(std::memory_order_relaxed));  // by this thread
  x.claimed.store(false, std::memory_order_release);
  if (all.flush) notes_.post(m, t, sampler::NoteKind::kFlushCalls, UINT32_MAX, all.call);
  return all;
}

}  // namespace uptier::tiering
