// pprof.h: a profile as `go tool pprof` and its like read it.
//
// Law: each number is in one sample only, so pprof's totals are ours. A sample stands at a block
// ("method", line = block site) or at a loop ("method loop N", inlined into "method", line = loop
// site). A block of a body that is inlined stands in the bodies around it, each at the line of its call
// site. The values are
//
//   executions   of the block, estimated
//   calls        of the method; at its first block
//   samples      sampled calls and bursts; at the first block
//   cycles       of the loop without those of the loops within, extrapolated as loop_cycles does;
//                only where some loop was timed
//   inlined      of these executions, those in inlined bodies; only where there are such
//
//   cpu          processor time of a call path (nanoseconds), and `stacks`, the samples that it is
//                from; only if stacks were sampled. These samples have whole stacks; they stand at
//                line 1 of each method
//
// A value stops at 2^63-1. The file of a method is "uptier/<module key>", as for lcov.
// Source: github.com/google/pprof/blob/main/proto/profile.proto.
#pragma once

#include <string>

#include "uptier/profile_file.h"
#include "uptier/profile_time.h"

namespace uptier::profile {

// Returns the message, not packed: every reader takes it, and `gzip` makes the usual file of it.
std::string to_pprof(const Profile& profile, const ProfileInfo& info, const TimeProfile& time = {});

}  // namespace uptier::profile
