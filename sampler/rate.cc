#include "sampler/rate.h"

namespace uptier::sampler {

Ladder::Ladder(GapKind kind) noexcept {
  for (uint32_t i = 0; i < kPowers; ++i) laws_[i] = GapLaw::make(kind, 1u << i);
}

uint32_t Ladder::add(uint32_t interval) noexcept {
  for (uint32_t i = 0; i < used_; ++i) {
    if (laws_[i].interval == interval) return i;
  }
  if (used_ == kRungs) return power_below(interval);
  laws_[used_] = GapLaw::make(laws_[0].kind, interval);
  return used_++;
}

uint32_t Ladder::power_below(double interval) noexcept {
  if (!(interval >= 2)) return 0;
  if (interval >= 1u << (kPowers - 1)) return kPowers - 1;
  return static_cast<uint32_t>(std::bit_width(static_cast<uint32_t>(interval))) - 1;
}

uint32_t Ladder::wider(uint32_t rung, uint32_t target) const noexcept {
  uint64_t twice = uint64_t{2} * interval(rung);
  if (twice >= interval(target)) return target;
  return power_below(static_cast<double>(twice));
}

}  // namespace uptier::sampler
