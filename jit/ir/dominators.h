// Dominators: which blocks every path from the entry to a block goes through.
//
// By the iterative algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm",
// 2001) over reverse postorder; questions are answered in constant time from the tree's intervals.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

struct Dominators {
  // Reachable blocks in reverse postorder, the entry first.
  std::vector<Block> order;
  // By Block::index(): the immediate dominator; none for the entry and for unreachable blocks.
  std::vector<Block> idom;
  // By Block::index(): the interval of the block in a walk over the tree; enter 0 is unreachable.
  std::vector<uint32_t> enter, leave;

  bool reachable(Block b) const { return enter[b.index()] != 0; }
  // Returns whether every path to `b` goes through `a`; a block dominates itself. Both reachable.
  bool dominates(Block a, Block b) const {
    return enter[a.index()] <= enter[b.index()] && leave[b.index()] <= leave[a.index()];
  }
};

// Every block of `f` in the layout must end in a terminator whose edges lead to blocks in the
// layout. Uses no recursion. Cost: near linear; blocks x depth when loops nest thousands deep.
Dominators compute_dominators(const Function& f);

}  // namespace uptier::jit
