// LoopForest: the loops that a host marked, and how they nest.
//
// A loop is what can reach a back edge of its header (an edge from a block that the header
// dominates) without passing the header; the blocks of one header's back edges make one loop. A
// marked header without a back edge is a loop of one block. So control enters a loop through its
// header only, whatever the graph; a cycle with two entrances is no part of it.
//
//   Thread: none of its own; a value.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

struct LoopForest {
  struct Loop {
    Block header;
    LoopId parent;              // the next marked loop outwards, or none
    uint32_t depth = 0;         // 0: outermost
    uint32_t height = 0;        // 0: innermost
    uint32_t siblings = 0;      // other loops of the same parent
    std::vector<Block> blocks;  // in layout order, those of inner loops included
  };
  std::vector<Loop> loops;        // by LoopId
  std::vector<LoopId> innermost;  // by Block::index()

  const Loop& loop(LoopId l) const { return loops[l.index()]; }
  // Returns whether the loop holds the block. Cost: the depth.
  bool contains(LoopId l, Block b) const;
};

// LoopIds are those of the headers of `f` as it was built. What lost its header since is a loop
// without blocks and without a header. Cost: the sum of the loops' sizes.
LoopForest find_loop_forest(const Function& f);

// Which loops are timed.
struct LoopProbeRequest {
  bool loops = false;
  bool function = false;            // the body as a whole, with the id LoopId(loop_count)
  uint32_t max_depth = UINT32_MAX;  // 0: outermost loops only
  uint32_t min_height = 0;          // 1: no innermost loops
  bool siblings_only = false;       // loops that have siblings
  bool dual = false;                // every execution is timed, see sampler/loop_timer.h
  uint32_t records = 2048;          // timed executions of a loop between two flushes, at most
  std::optional<std::vector<uint32_t>> timed = {};  // of those selected; the others are counted
};

// Returns whether each loop is selected, by LoopId; one more entry for the function.
std::vector<bool> select_loops(const LoopForest& forest, const LoopProbeRequest& r);

// What following an edge means for the loops of a forest.
struct LoopCrossing {
  LoopId entered;            // or none
  std::vector<LoopId> left;  // innermost first
};
LoopCrossing crossing(const LoopForest& forest, Block from, Block to);

}  // namespace uptier::jit
