// copy_tail: replaces a jump by a copy of its target.
//
//     b: ... jump t(x)            b: ... t's instructions, with x for p; t's terminator
//     t(p): ...; branch ...   ->  t(p): ...; branch ...
//
// Copies keep the probes of the block, so counts still add up. Afterwards, values that the block
// defines have several definitions: `redefined` lists them for repair_ssa.
#pragma once

#include <vector>

#include "jit/opt/repair_ssa.h"

namespace uptier::jit {

// Returns whether a block may be copied: it has nothing that must be unique, such as calls, and at
// most `most` instructions. Probes and constants do not count.
bool may_copy_tail(const Function& f, Block b, uint32_t most);

// Replaces the jump at the end of `into` by a copy of `tail`.
void copy_tail(Function& f, Block tail, Block into, std::vector<Redefinition>& redefined);

}  // namespace uptier::jit
