// Compiled with -mgeneral-regs-only: see fast_sample.h.
#include "sampler/fast_sample.h"

#include "sampler/loop_arm.h"

namespace uptier::sampler {

void FastSampling::stop(Timed& t, uint64_t started) noexcept {
  uint64_t gone = __builtin_ia32_rdtsc() - started;
  if (gone >= CostMeter::kInterrupted) return;
  t.events.fetch_add(1, std::memory_order_relaxed);
  t.cycles.fetch_add(gone, std::memory_order_relaxed);
}

const void* FastSampling::take(uint32_t method, ThreadContext& context) noexcept {
  uint64_t taken = context.samples_taken.load(std::memory_order_relaxed);
  uint64_t started = taken % kTimed == 0 ? __builtin_ia32_rdtsc() : 0;
  if (context.runtime != runtime_) return nullptr;
  const PerMethod& m = methods_[method];
  const void* entry = m.entry.load(std::memory_order_acquire);  // pairs with set_entry()
  MethodState& s = context.method(method);
  // The countdown is due right now, it was armed before, and there is a slab to count in.
  if (entry == nullptr || s.slab == nullptr || s.call_gap == 0 || s.call_countdown != -1) {
    return nullptr;
  }
  // The rate has not changed, and a decaying one stays at its rung.
  Rate rate{s.rate};
  if (m.rate.load() != rate || s.flush_is_next != 0 || s.samples_left == 1) return nullptr;
  if (limit_reached(context)) return nullptr;
  uint64_t call = s.calls + s.call_gap;
  if (call != s.next_sample || call >= s.next_flush) return nullptr;

  store_seen(s.calls, call);
  s.next_sample = call + ladder_.law(rate.rung()).draw(context.random);
  uint64_t next = s.next_sample < s.next_flush ? s.next_sample : s.next_flush;
  uint64_t left = next - call, most = longest_call_gap(call);
  auto gap = static_cast<uint32_t>(left < most ? left : most);
  store_seen(s.call_gap, gap);
  store_seen(s.call_countdown, static_cast<int32_t>(gap) - 1);
  count_sample(s);
  spend_sample(context);
  if (started != 0) stop(calls_, started);
  return entry;
}

const void* FastSampling::begin_burst(uint32_t method, uint32_t loop,
                                      ThreadContext& context) noexcept {
  uint64_t taken = context.samples_taken.load(std::memory_order_relaxed);
  uint64_t started = taken % kTimed == 0 ? __builtin_ia32_rdtsc() : 0;
  if (context.runtime != runtime_) return nullptr;
  const PerMethod& m = methods_[method];
  const LoopCell* cells = m.loops.load(std::memory_order_acquire);  // pairs with set_loops()
  MethodState& s = context.method(method);
  // A stretch is over, not only a part of one, and there is a slab to count in.
  if (cells == nullptr || s.slab == nullptr) return nullptr;
  if (s.loop_countdown != 0 || s.loop_gap <= 0 || s.loop_left != 0) return nullptr;
  // The rate is sampled and has not changed, and a decaying one stays at its rung.
  Rate rate{s.rate};
  if (rate.state() != RateState::kSampled || m.rate.load() != rate) return nullptr;
  if (s.samples_left == 1 || limit_reached(context)) return nullptr;
  uint64_t now = s.iterations + static_cast<uint64_t>(s.loop_gap);
  if (now >= s.next_loop_flush) return nullptr;

  store_seen(s.iterations, now);
  store_seen(s.bursts, s.bursts + 1);
  if (s.samples_left != 0) --s.samples_left;
  spend_sample(context);
  arm_loop(s, rate.burst(), true);
  draw_behind(s, ladder_.law(rate.rung()), rate.burst(), context.random);
  const LoopCell& cell = cells[loop];
  if (cell.enter != LoopCell::kNone) ++s.slab[cell.enter / 8];
  context.quick_loop_events.store(context.quick_loop_events.load(std::memory_order_relaxed) + 1,
                                  std::memory_order_relaxed);
  const void* copy = cell.instrumented.load(std::memory_order_relaxed);
  if (started != 0) stop(bursts_, started);
  return copy;
}

extern "C" const void* uptier_take_sample(uint32_t method, const void* fast,
                                          ThreadContext* context) noexcept {
  return static_cast<FastSampling*>(const_cast<void*>(fast))->take(method, *context);
}
extern "C" const void* uptier_begin_burst(uint32_t method, uint32_t loop, ThreadContext* context,
                                          const void* fast) noexcept {
  return static_cast<FastSampling*>(const_cast<void*>(fast))->begin_burst(method, loop, *context);
}

}  // namespace uptier::sampler
