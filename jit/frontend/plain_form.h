// The plain form of a body: what it takes to make and to compile is linear in its size.
//
// In SSA form a body of K blocks and K variables may have K * K values, or K values that live in K
// blocks each: some 100 KB of WebAssembly take minutes and gigabytes. Such bodies are told by counting
// what their description takes (FunctionBuilder::Impl::spend, lives_too_long), and are described a
// second time, plainly:
//
//   Variables that are declared in the entry are words of the frame's own memory (frame_memory),
//   which definitions store and uses load; and so is each value, when that is done, that lives on
//   for many blocks, or into a loop (shorten_lives).
//
// It is the same for every copy: nothing but the description decides. Only the baseline compiles it.
#pragma once

#include "jit/ir/function.h"

namespace uptier::jit {

// Returns whether sets of live values would have more members than a body of this size may have.
bool lives_too_long(const Function& f);

// Puts values into memory that live for more blocks than `most`, or into a loop. `bytes`: of the
// frame's memory, that Variables have; what is put there comes after them. Nothing where there is no
// frame_memory. Cost: linear.
void shorten_lives(Function& f, uint32_t bytes, uint32_t most);

}  // namespace uptier::jit
