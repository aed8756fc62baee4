// The counts that code is made from, once a program's behavior has changed.
//
//   baseline code drifted   the counts since, as soon as they have kPhaseSamples samples; until then the
//                           counts of all time
//   optimized code drifted  the windows of its copy since; blocks that the copy does not count (because
//                           they were removed) keep their share in the counts of all time
//
// In both cases they are scaled to the counts of all time, so that frequencies of different methods
// stay comparable. For inlined bodies, and for the method's own indirect calls, the next version
// uses the windows, whatever the inlined method does elsewhere (InlineeSource::find_blocks,
// find_targets).
//
//   Thread: the caller holds the runtime's state mutex.
#pragma once

#include <cstdint>
#include <vector>

#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "tiering/observe/estimates.h"

namespace uptier::tiering {

// Returns estimated executions by block site - 1, for the compiler; empty if too little is known.
std::vector<uint64_t> blocks_to_compile_from(const Method& m, const Estimates& estimates)
    UPTIER_REQUIRES(state_lock);

// Returns the bound on the distance of a saved profile's shares from the shares it is a sample of;
// at most 1, and 1 without samples.
double draw_error(const std::vector<double>& counts, double samples) UPTIER_REQUIRES(state_lock);

// Returns the bound on the distance of these blocks' shares from the truth.
double profile_error(const Method& m, const std::vector<uint64_t>& blocks)
    UPTIER_REQUIRES(state_lock);

// Baseline code has drifted: the counts up to now belong to another phase.
void begin_phase(Method& m, const Estimates& estimates) UPTIER_REQUIRES(state_lock);
// Optimized code has drifted: the next version is made from the windows of its copy.
void begin_copy_phase(Method& m, const Estimates& estimates) UPTIER_REQUIRES(state_lock);
// The same for the version that frames stay in at the loop of `copy`, whose windows are `o`. Counts
// outside of the loop stay as they are.
void begin_loop_phase(Method& m, const Version& copy, CopyWindows& o, const Estimates& estimates)
    UPTIER_REQUIRES(state_lock);

}  // namespace uptier::tiering
