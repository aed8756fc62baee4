// LoopForest: the loops that a host marked, and how they nest.
//
// A loop consists of the blocks that can reach a back edge of its header (an edge from a block that
// the header dominates) without passing the header; all back edges of one header make one loop. A
// marked header without a back edge is a loop of one block. So control enters a loop only through
// its header, whatever the graph; a cycle with two entrances is not part of a loop.
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
    std::vector<Block> blocks;  // in layout order, including the blocks of inner loops
  };
  std::vector<Loop> loops;        // by LoopId
  std::vector<LoopId> innermost;  // by Block::index()

  const Loop& loop(LoopId l) const { return loops[l.index()]; }
  // Returns whether the loop contains the block. Cost: the depth.
  bool contains(LoopId l, Block b) const;
};

// LoopIds are those of the headers of `f` as it was built. A loop whose header was removed since
// has no blocks and no header. Cost: the sum of the loops' sizes.
LoopForest find_loop_forest(const Function& f);

// Selects the loops to time.
struct LoopProbeRequest {
  bool loops = false;
  bool function = false;            // the body as a whole, with the id LoopId(loop_count)
  uint32_t max_depth = UINT32_MAX;  // 0: outermost loops only
  uint32_t min_height = 0;          // 1: no innermost loops
  bool siblings_only = false;       // loops that have siblings
  bool dual = false;                // every execution is timed, see sampler/loop_timer.h
  uint32_t records = 2048;          // most timed executions of a loop between two flushes
  std::optional<std::vector<uint32_t>> timed = {};  // if given, only these are timed; other
                                                    // selected loops are counted
};

// Returns for each loop whether it is selected, by LoopId; one more entry for the function.
std::vector<bool> select_loops(const LoopForest& forest, const LoopProbeRequest& r);

// The loops of a forest that control enters and leaves along an edge.
struct LoopCrossing {
  LoopId entered;            // or none
  std::vector<LoopId> left;  // or none
};
LoopCrossing crossing(const LoopForest& forest, Block from, Block to);

}  // namespace uptier::jit
