// EdgeChange: a vreg that is in one part at the end of a block, and in another at the start of a
// successor.
//
// The two ends of an edge are two positions of the layout, and only a vreg that has a part
// beginning between them can have changed. The search looks either at those vregs, or at the vregs
// with several parts that are live into the target, whichever are fewer. So neither a jump over
// much code nor a block with many live vregs costs more than it must. One sweep over the layout
// keeps the set of live vregs.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/regalloc/allocation.h"

namespace uptier::jit::machine {

struct EdgeChange {
  uint32_t block;          // the edge leaves it
  uint32_t edge;           // index among the edges of its terminator
  uint32_t vreg;           // live into the target, and not one of its parameters
  uint32_t before, after;  // parts
};

// Returns the changes in the order of block, edge, vreg. If several edges of a switch have the same
// target, only the first is listed.
std::vector<EdgeChange> find_edge_changes(const MachineFunction& m, const LiveRanges& live,
                                          const PieceList& list);

}  // namespace uptier::jit::machine
