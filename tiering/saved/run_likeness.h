// Says whether a run is like the runs before it.
//
// Likeness of a run R and an average run F of the file, in executions of blocks:
//
//     sum of min(R, F) / max(sum of R, sum of F)       over blocks of methods with the same code
//
// where trusted methods are assumed to have run as often as the file says.
#pragma once

#include "tiering/saved/seen_run.h"
#include "uptier/profile.h"

namespace uptier::tiering {

// Returns whether a run is like one of `runs` runs with the sum `saved`. `seen` has the observed
// methods; its fates tell about all others. If so, its counts would change no share by much. Pure.
// Cost: reads all counts once.
bool is_like(const SeenRun& seen, const Profile& saved, double runs);

}  // namespace uptier::tiering
