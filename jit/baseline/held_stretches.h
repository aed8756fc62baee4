// Held stretches: where a plain copy keeps the method's countdown of loop iterations in a register.
//
//   header:  dec r10d; jle slow        in a stretch
//            mov r11, fs:[..]; dec dword [r11 + ..]; jle slow        elsewhere
//
// A stretch is a run of blocks in layout order, from a loop's header to the last block that jumps
// back to it. Edges into it load the countdown; edges out of it, returns, exits and slow sides
// store it. A call in it has a store before it and a load after it. So a loop with calls is a
// stretch only if it calls in at most a third of its iterations, judging by its shape: an iteration
// saves two instructions, a call costs four (docs/notes/0021).
#pragma once

#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit::baseline {

// Returns, by Block::index(), which blocks lie in a stretch; empty: none. Cost: two passes.
std::vector<bool> find_held(const Function& f);

}  // namespace uptier::jit::baseline
