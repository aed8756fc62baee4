// copy_tail: the end of a block, done once more where it is jumped to from.
//
//     b: ... jump t(x)            b: ... t's instructions, with x for p; t's terminator
//     t(p): ...; branch ...   ->  t(p): ...; branch ...
//
// Copies keep the probes of the block, so counts still sum up. What the block defines has several
// definitions afterwards: `redefined` says which, for repair_ssa.
#pragma once

#include <vector>

#include "jit/opt/repair_ssa.h"

namespace uptier::jit {

// Whether a block has nothing in it that there may only be one of, such as calls, and at most
// `most` instructions; probes and constants do not count.
bool may_copy_tail(const Function& f, Block b, uint32_t most);

// Replaces the jump at the end of `into` by what `tail` does.
void copy_tail(Function& f, Block tail, Block into, std::vector<Redefinition>& redefined);

}  // namespace uptier::jit
