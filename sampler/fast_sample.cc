// Compiled with -mgeneral-regs-only: see fast_sample.h.
#include "sampler/fast_sample.h"

namespace uptier::sampler {

const void* FastSampling::take(uint32_t method, ThreadContext& context) const noexcept {
  if (context.runtime != runtime_) return nullptr;
  const void* entry = entries_[method].load(std::memory_order_acquire);  // pairs with set_entry()
  MethodState& s = context.method(method);
  // The countdown is due exactly now, it was armed before, and there is a slab to count in.
  if (entry == nullptr || s.slab == nullptr || s.call_gap == 0 || s.call_countdown != -1) {
    return nullptr;
  }
  uint64_t call = s.calls + s.call_gap;
  if (call != s.next_sample || call >= s.next_flush) return nullptr;
  uint64_t random = context.random;
  uint32_t gap = gaps_.draw(next_random(random));
  if (gap == 0) return nullptr;

  context.random = random;
  s.calls = call;
  s.next_sample = call + gap;
  uint64_t next = s.next_sample < s.next_flush ? s.next_sample : s.next_flush;
  s.call_gap = static_cast<uint32_t>(next - call);
  s.call_countdown = static_cast<int32_t>(s.call_gap) - 1;
  ++s.sampled_calls;
  return entry;
}

extern "C" const void* uptier_take_sample(uint32_t method, const void* fast,
                                          ThreadContext* context) noexcept {
  return static_cast<const FastSampling*>(fast)->take(method, *context);
}

}  // namespace uptier::sampler
