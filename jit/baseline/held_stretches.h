// Held stretches: where a plain copy keeps the method's countdown of loop iterations in a register.
//
//   header:  dec r10d; jle slow        in a stretch
//            mov r11, fs:[..]; dec dword [r11 + ..]; jle slow        elsewhere
//
// A stretch is a run of blocks in layout order, from a loop's header to the last block that goes
// back to it. Edges into it load the countdown; edges out of it, returns, exits and slow sides
// store it. A call in it has a store ahead of it and a load after it, so a loop that calls is one
// only if it calls in a third of its rounds at most, as far as its shape says: two instructions are
// saved a round, and four spent a call (docs/notes/0021).
#pragma once

#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit::baseline {

// Returns by Block::index() which blocks lie in a stretch; empty: none. Cost: two passes.
std::vector<bool> find_held(const Function& f);

}  // namespace uptier::jit::baseline
