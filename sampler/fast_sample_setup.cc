// The parts of FastSampling that are not on the fast path; see fast_sample.cc for that.
#include "sampler/fast_sample.h"

#include <utility>

namespace uptier::sampler {

FastSampling::FastSampling(const void* runtime, uint32_t methods, const Schedule& schedule)
    : runtime_(runtime), schedule_(schedule), ladder_(schedule.ladder) {
  // Not by calloc(): after a block as large was freed once, it would fill the next one with zeros.
  Result<Reservation> memory = Reservation::create(methods * sizeof(PerMethod), "methods");
  if (!memory) return;
  memory_ = std::move(*memory);
  methods_ = static_cast<PerMethod*>(memory_.data());
}

}  // namespace uptier::sampler
