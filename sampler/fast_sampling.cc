// What of FastSampling does not run on the fast path; see fast_sample.cc for that.
#include "sampler/fast_sample.h"

namespace uptier::sampler {

FastSampling::FastSampling(const void* runtime, uint32_t methods, const Schedule& schedule)
    : runtime_(runtime),
      ladder_(schedule.ladder),
      methods_(std::make_unique<PerMethod[]>(methods)) {
  for (uint32_t i = 0; i < methods; ++i) methods_[i].rate.set(schedule.rate);
}

}  // namespace uptier::sampler
