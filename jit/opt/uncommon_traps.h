// uncommon_traps: replaces blocks that a profile has never seen by side exits.
#pragma once

#include <cstdint>
#include <span>

#include "jit/frontend/attach_deopts.h"

namespace uptier::jit {

// The profile that decides which blocks are assumed never to run.
struct ColdBlocks {
  std::span<const uint64_t> counts;  // by block site - 1; empty: no profile, no block is cold
  std::span<const uint8_t> kept;  // by block site - 1: not 0 for blocks that stay; may be shorter
  LoopId entered_at;              // the loop at which the code is entered, or none
};

// Replaces blocks that never ran by exits to baseline code. Returns the number of exits. `f` as it
// was built, apart from the changes of attach_deopts.
uint32_t uncommon_traps(Function& f, const DeoptContext& c, const ColdBlocks& cold);

}  // namespace uptier::jit
