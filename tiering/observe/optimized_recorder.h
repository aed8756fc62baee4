// OptimizedRecorder: records flushes of instrumented copies of optimized code. Each thread has a
// second stream for them (kOptimizedStream).
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <span>

#include "sampler/convergence.h"
#include "sampler/schedule.h"
#include "sampler/snapshot_ring.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/observe/method_directory.h"
#include "tiering/observe/tallied.h"
#include "tiering/observe/trace_emitter.h"
#include "uptier/options.h"

namespace uptier::tiering {

class OptimizedRecorder {
 public:
  // All outlive this. `live`: the options with later changes.
  OptimizedRecorder(const Options& live, const sampler::Ladder& ladder,
                    const MethodDirectory& directory, const Tallied& tallied, TraceEmitter& trace)
      : live_(live), ladder_(ladder), directory_(directory), tallied_(tallied), trace_(trace) {}

  // Stores a snapshot and emits its events. Returns the executions since the previous one, as a
  // window. `loop`: if the samples are iterations of a loop, its copy; otherwise null.
  sampler::Window take(Method& m, uint32_t thread, const sampler::Note& note,
                       std::span<const uint64_t> counts, const Version* loop)
      UPTIER_REQUIRES(state_lock);

 private:
  uint64_t weight_of_iterations(Method& m, const Version& copy, uint64_t samples)
      UPTIER_REQUIRES(state_lock);
  uint64_t weight_of(Method& m, uint32_t thread, const sampler::Note& note, uint64_t samples)
      UPTIER_REQUIRES(state_lock);

  const Options& live_;
  const sampler::Ladder& ladder_;
  const MethodDirectory& directory_;
  const Tallied& tallied_;
  TraceEmitter& trace_;
};

}  // namespace uptier::tiering
