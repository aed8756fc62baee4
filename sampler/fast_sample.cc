// Compiled with -mgeneral-regs-only: see fast_sample.h.
#include "sampler/fast_sample.h"

namespace uptier::sampler {

const void* FastSampling::take(uint32_t method, ThreadContext& context) noexcept {
  uint64_t taken = context.samples_taken.load(std::memory_order_relaxed);
  uint64_t started = taken % CostMeter::kEvery == 0 ? __builtin_ia32_rdtsc() : 0;
  if (context.runtime != runtime_) return nullptr;
  const PerMethod& m = methods_[method];
  const void* entry = m.entry.load(std::memory_order_acquire);  // pairs with set_entry()
  MethodState& s = context.method(method);
  // The countdown is due exactly now, it was armed before, and there is a slab to count in.
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
  uint64_t gap = next - call;
  s.call_gap = static_cast<uint32_t>(gap < kRecheckCalls ? gap : kRecheckCalls);
  s.call_countdown = static_cast<int32_t>(s.call_gap) - 1;
  count_sample(s);
  spend_sample(context);
  if (started != 0) {
    uint64_t gone = __builtin_ia32_rdtsc() - started;
    if (gone < CostMeter::kInterrupted) {
      timed_.fetch_add(1, std::memory_order_relaxed);
      cycles_.fetch_add(gone, std::memory_order_relaxed);
    }
  }
  return entry;
}

extern "C" const void* uptier_take_sample(uint32_t method, const void* fast,
                                          ThreadContext* context) noexcept {
  return static_cast<FastSampling*>(const_cast<void*>(fast))->take(method, *context);
}

}  // namespace uptier::sampler
