// verify_built.h: says what is wrong with a Function that a FunctionBuilder has just made.
//
// A builder whose status is Ok vouches for the structure, whatever its host did: ids and lists are
// in range, instructions are placed once, only the last of a block ends it, what is laid out can be
// reached, the entry has the signature's parameters and no predecessor, loop headers and block
// probes are first, and sites, loops and the hash are what number_sites() made them. So only what
// hosts can get wrong is looked at:
//
//   a block that is led to and was never filled, or has no end
//   types, flags, immediates, signatures: every rule of one instruction
//   a value in another block than its own, where it is not always defined
//   a guard without its frame_state
//
// The answer is that of verify(): what does not pass at a glance is given to it. In builds with
// asserts what passes is as well.
#pragma once

#include "jit/ir/function.h"
#include "uptier/result.h"

namespace uptier::jit {

// `f` is what BuilderAccess::finish() returned for a builder whose status is Ok, and was not
// adopted. Errors: those of verify(f).
Status verify_built(const Function& f);

}  // namespace uptier::jit
