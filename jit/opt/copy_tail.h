// copy_tail: copies the target of a jump to the place of the jump.
//
//     b: ... jump t(x)            b: ... t's instructions, with x for p; t's terminator
//     t(p): ...; branch ...   ->  t(p): ...; branch ...
//
// Copies keep the probes of the block, so counts still add up. Values that the block defines have several
// definitions afterwards: `redefined` lists them for repair_ssa.
#pragma once

#include <vector>

#include "jit/opt/repair_ssa.h"

namespace uptier::jit {

// Returns whether a block has nothing in it that there may only be one of, such as calls, and at most
// `most` instructions; probes and constants do not count.
bool may_copy_tail(const Function& f, Block b, uint32_t most);

// Replaces the jump at the end of `into` by what `tail` does.
void copy_tail(Function& f, Block tail, Block into, std::vector<Redefinition>& redefined);

}  // namespace uptier::jit
