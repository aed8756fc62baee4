// EdgeChange: a vreg that is in one part at the end of a block, and in another where an edge leads.
//
// The two ends of an edge are two positions of the layout, and only a vreg that has a part
// beginning between them can have changed. Either those are looked at, or the vregs with several
// parts that are live into the target, whichever are fewer: neither a jump over much code nor a
// block that much is live into costs more than it must. What is live comes from one sweep over the
// layout.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/regalloc/allocation.h"

namespace uptier::jit::machine {

struct EdgeChange {
  uint32_t block;          // that the edge leaves
  uint32_t edge;           // place among the edges of its terminator
  uint32_t vreg;           // live into the target, and not its parameter
  uint32_t before, after;  // parts
};

// Returns the changes in the order of block, edge, vreg. Of equal edges of a switch only the first
// is looked at.
std::vector<EdgeChange> find_edge_changes(const MachineFunction& m, const LiveRanges& live,
                                          const PieceList& list);

}  // namespace uptier::jit::machine
