// verify_built.h: verifies a Function that a FunctionBuilder has just made.
//
// A builder whose status is Ok guarantees the structure, whatever its host did: ids and lists are
// in range, instructions are placed once, only the last of a block ends it, laid-out blocks are
// reachable, the entry has the signature's parameters and no predecessor, loop headers and block
// probes are first, and sites, loops and the hash are as number_sites() made them. So only mistakes
// of hosts are looked for:
//
//   a block that is a jump target and was never filled, or has no end
//   types, flags, immediates, signatures: every rule of one instruction
//   a value used in another block than its own, where it is not always defined
//   a guard without its frame_state
//
// The answer is the same as from verify(): a function that fails these quick checks is given to
// it. In builds with asserts, the others are too.
#pragma once

#include "jit/ir/function.h"
#include "uptier/result.h"

namespace uptier::jit {

// `f` is the result of BuilderAccess::finish() for a builder whose status is Ok, and was not
// adopted. Errors: as verify(f).
Status verify_built(const Function& f);

}  // namespace uptier::jit
