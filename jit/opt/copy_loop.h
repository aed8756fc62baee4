// copy_loop: puts copies of a loop's first iterations in front of it.
//
//     outside -> c1 -> c2 -> loop
//
// Copies keep every test and every exit, so the number of iterations need not be known. They keep
// the probes, so counts still add up. Afterwards, values that the loop defines have several
// definitions, which repair_ssa joins.
#pragma once

#include <span>
#include <vector>

#include "jit/ir/function.h"
#include "jit/opt/repair_ssa.h"

namespace uptier::jit {

// The result: the copied iterations, each with its blocks in the loop's order and its instructions
// in their order, and the edges that led to the loop from outside.
struct LoopCopies {
  std::vector<std::vector<Block>> rounds;
  std::vector<Predecessor> entries;
};

// Returns the number of instructions of a loop to be copied, without constants, probes and jumps; 0
// if it has calls or more than `most` instructions.
uint32_t size_of_copy(const Function& f, std::span<const Block> blocks, uint32_t most);

// `blocks` are those of a natural loop, the header first. Adds to `redefined` the input of
// repair_ssa. The loops of one call of repair_ssa must be disjoint.
LoopCopies copy_loop(Function& f, std::span<const Block> blocks, uint32_t copies,
                     std::vector<Redefinition>& redefined);

}  // namespace uptier::jit
