#include <algorithm>
#include <cmath>

#include "sampler/fast_sample.h"

namespace uptier::sampler {

GapTable::GapTable(const GapLaw& law) {
  bool one_gap = law.kind != GapKind::kRandom || law.interval == 1;
  for (uint32_t i = 0; i < strata_.size(); ++i) {
    Stratum& s = strata_[i];
    if (one_gap) {
      s = {law.interval == 1 ? 1 : law.step, UINT32_MAX, 0};
      continue;
    }
    double from = i / 256.0;
    uint32_t first = next_gap(law.interval, from);
    uint32_t last = next_gap(law.interval, std::nextafter((i + 1) / 256.0, 0.0));
    if (last > first + 1 || i == 255) continue;  // low 0: not known here
    // Gaps above `first` begin at u = 1 - (1 - 1/interval)^first.
    double begins = -std::expm1(first * std::log1p(-1.0 / law.interval));
    double share = std::clamp((begins - from) * 256.0, 0.0, 1.0);
    s = {first, static_cast<uint32_t>(std::min(share * 0x1p32, 0x1p32 - 1)), last - first};
  }
}

FastSampling::FastSampling(const void* runtime, uint32_t methods, const GapLaw& law)
    : runtime_(runtime),
      gaps_(law),
      entries_(std::make_unique<std::atomic<const void*>[]>(methods)) {}

}  // namespace uptier::sampler
