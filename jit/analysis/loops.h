// Loops: the natural loops of a function and how they nest.
//
// A loop consists of the blocks that can reach a back edge (an edge to a block that dominates its
// source) without passing the header. Back edges to one header make one loop. A cycle with two
// entrances is not a loop here and gets no special treatment.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/analysis/control_flow.h"

namespace uptier::jit {

inline constexpr uint32_t kNoLoop = UINT32_MAX;

struct LoopNest {
  struct Loop {
    Block header;
    uint32_t parent = kNoLoop;  // the next loop outwards
    uint32_t depth = 1;         // 1 for an outermost loop
  };
  std::vector<Loop> loops;        // inner loops before the loops around them
  std::vector<uint32_t> loop_of;  // by Block::index(): innermost loop, or kNoLoop

  uint32_t depth(Block b) const {
    uint32_t l = loop_of[b.index()];
    return l == kNoLoop ? 0 : loops[l].depth;
  }
  // Returns whether the loop `l` (kNoLoop: the whole function) contains the block. Cost: the depth.
  bool contains(uint32_t l, Block b) const;
  bool is_header(Block b) const {
    uint32_t l = loop_of[b.index()];
    return l != kNoLoop && loops[l].header == b;
  }
};

// Near linear.
LoopNest find_loops(const Function& f, const ControlFlow& d);

}  // namespace uptier::jit
