// The plain form of a body: its construction and compilation take linear time and memory.
//
// In SSA form a body of K blocks and K variables may have K * K values, or K values that live in K
// blocks each: some 100 KB of WebAssembly take minutes and gigabytes. Such bodies are detected by
// counting the cost of their description (FunctionBuilder::Impl::spend, lives_too_long), and are
// described a second time in the plain form:
//
//   Variables declared in the entry are words of the frame's own memory (frame_memory); definitions
//   store them and uses load them. Afterwards, each value that lives for many blocks, or into a loop,
//   is put into memory as well (shorten_lives).
//
// The form is the same for every copy: it depends only on the description. Only the baseline
// compiles it.
#pragma once

#include "jit/ir/function.h"

namespace uptier::jit {

// Returns whether sets of live values would have more members than a body of this size may have.
bool lives_too_long(const Function& f);

// Puts values into memory that live for more than `most` blocks, or into a loop. `bytes`: size of
// the Variables in the frame's memory; the values are put after them. Does nothing if there is no
// frame_memory. Cost: linear.
void shorten_lives(Function& f, uint32_t bytes, uint32_t most);

}  // namespace uptier::jit
