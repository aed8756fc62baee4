#include "sampler/stack_record.h"

namespace uptier::sampler {

const char* sample_leaf_name(SampleLeaf leaf) noexcept {
  static constexpr const char* kNames[kSampleLeaves] = {"body", "stub",    "runtime",
                                                        "host", "blocked", "outside"};
  return kNames[static_cast<uint32_t>(leaf)];
}

const char* sample_gap_name(SampleGap gap) noexcept {
  static constexpr const char* kNames[kSampleGaps] = {"none",     "other_runtime", "foreign_stack",
                                                      "no_frame", "broken_chain",  "too_deep",
                                                      "uncertain"};
  return kNames[static_cast<uint32_t>(gap)];
}

}  // namespace uptier::sampler
