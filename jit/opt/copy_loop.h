// copy_loop: writes out the first rounds of a loop in front of it.
//
//     outside -> c1 -> c2 -> loop
//
// Copies keep every test and every exit, so nothing needs to be known about how often the loop goes
// round. They keep the probes, so counts still add up. Values that the loop defines have several
// definitions afterwards, which repair_ssa joins.
#pragma once

#include <span>
#include <vector>

#include "jit/ir/function.h"
#include "jit/opt/repair_ssa.h"

namespace uptier::jit {

// What was made of a loop: the copied rounds, each with its blocks in the order of the loop's and its
// instructions in the order of theirs, and the edges that led to the loop from outside.
struct LoopCopies {
  std::vector<std::vector<Block>> rounds;
  std::vector<Predecessor> entries;
};

// Returns the instructions of a loop that may be copied, without constants, probes and jumps; 0 for
// one that calls, or has more than `most`.
uint32_t size_of_copy(const Function& f, std::span<const Block> blocks, uint32_t most);

// `blocks` are those of a natural loop, its header first. Adds to `redefined` what repair_ssa is to
// be told; the loops of one call of repair_ssa must be disjoint.
LoopCopies copy_loop(Function& f, std::span<const Block> blocks, uint32_t copies,
                     std::vector<Redefinition>& redefined);

}  // namespace uptier::jit
