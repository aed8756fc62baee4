// Whether a run has seen what the runs before it saw.
//
// Likeness of a run R and one of the file F, in executions of blocks:
//
//     sum of min(R, F) / max(sum of R, sum of F)       over blocks of methods with the same code
//
// where a method that was taken on trust ran as often as the file says.
#pragma once

#include "tiering/saved/seen_run.h"
#include "uptier/profile.h"

namespace uptier::tiering {

// Returns whether a run is like one of `runs` whose sum is `saved`: `seen` has what it has watched, all
// else is as its fates say. So its counts would change no share by much. Pure. Cost: all counts, once.
bool is_like(const SeenRun& seen, const Profile& saved, double runs);

}  // namespace uptier::tiering
