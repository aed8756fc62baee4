// pprof.h: a profile for `go tool pprof` and similar tools.
//
// Law: each number is in one sample only, so pprof's totals are ours. The location of a sample is a
// block ("method", line = block site) or a loop ("method loop N", inlined into "method", line =
// loop site). A block of an inlined body is inside of the bodies around it, each at the line of its
// call site. The values are
//
//   executions   of the block, estimated
//   calls        of the method; at its first block
//   samples      sampled calls and bursts; at the first block
//   cycles       of the loop without its inner loops, extrapolated as in loop_cycles; only if some
//                loop was timed
//   inlined      the executions in inlined bodies; only if there are any
//
//   cpu          processor time of a call path (nanoseconds), and `stacks`, the number of its
//                samples; only if stacks were sampled. These samples have whole stacks, at line 1
//                of each method
//
// A value saturates at 2^63-1. The file of a method is "uptier/<module key>", as for lcov.
// Source: github.com/google/pprof/blob/main/proto/profile.proto.
#pragma once

#include <string>

#include "uptier/profile_file.h"
#include "uptier/profile_time.h"

namespace uptier::profile {

// Returns the message, not compressed: every reader accepts it, and `gzip` makes the usual file of
// it.
std::string to_pprof(const Profile& profile, const ProfileInfo& info, const TimeProfile& time = {});

}  // namespace uptier::profile
