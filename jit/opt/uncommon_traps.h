// uncommon_traps: replaces blocks that a profile has never seen by side exits.
#pragma once

#include <cstdint>
#include <span>

#include "jit/frontend/attach_deopts.h"

namespace uptier::jit {

// Which blocks are taken never to run.
struct ColdBlocks {
  std::span<const uint64_t> counts;  // by block site - 1; empty: nothing is known, none is cold
  std::span<const uint8_t> kept;     // by block site - 1: not 0 for those that stay; may be short
  LoopId entered_at;                 // the loop at which the code is entered, or none
};

// Replaces blocks that never ran by exits to baseline code. Returns how many. `f` as it was built,
// except what attach_deopts did.
uint32_t uncommon_traps(Function& f, const DeoptContext& c, const ColdBlocks& cold);

}  // namespace uptier::jit
