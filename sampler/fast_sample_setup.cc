// The parts of FastSampling that are not on the fast path; see fast_sample.cc for that.
#include "sampler/fast_sample.h"

namespace uptier::sampler {

FastSampling::FastSampling(const void* runtime, uint32_t methods, const Schedule& schedule)
    : runtime_(runtime),
      schedule_(schedule),
      ladder_(schedule.ladder),
      methods_(static_cast<PerMethod*>(std::calloc(methods, sizeof(PerMethod)))) {}

}  // namespace uptier::sampler
