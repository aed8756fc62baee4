// positions: where a method's locations lie in the sources.
#pragma once

#include "tiering/base/state_lock.h"
#include "tiering/model/method.h"
#include "uptier/positions.h"

namespace uptier::tiering {

// Returns the position of a location: the one that its body was described with, or the host's
// answer. Calls the host.
SourcePositions positions_of(const Method& m, uint32_t location) UPTIER_REQUIRES(state_lock);

}  // namespace uptier::tiering
