// Dominators: the blocks that every path from the entry to a block passes.
//
// Uses the iterative algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm",
// 2001) over reverse postorder; if its walks get too long, the algorithm of Lengauer and Tarjan ("A
// Fast Algorithm for Finding Dominators in a Flowgraph", 1979, the simple version). Queries take
// constant time, from the tree's intervals.
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
// layout. Uses no recursion. Cost: edges x log(blocks) at most. `free_steps`: steps that the walks
// may take in addition to some for each edge; 0 for none at all, in tests.
Dominators compute_dominators(const Function& f, uint64_t free_steps = 1 << 16);

}  // namespace uptier::jit
