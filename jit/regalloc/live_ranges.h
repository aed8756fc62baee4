// LiveRanges: where each vreg is live, and where it is used.
//
// Positions are defined in machine.h. A vreg's ranges are sorted and disjoint: each goes from the
// definition (or the start of a block that the vreg is live into) to the last use there, or to the
// end of the block. The search walks from the uses up to the definitions, 64 vregs at a time. A
// step handles all 64 in a block at once, so long lives through many blocks cost little.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jit/machine/machine.h"

namespace uptier::jit::machine {

struct Range {
  uint32_t from, to;  // half open
};

// A use or the definition of a vreg.
struct UsePoint {
  uint32_t pos;
  uint32_t operand;  // in MachineFunction::operands; UINT32_MAX: an edge argument or a parameter
  float weight;      // the gain of a register here: the frequency, less where memory will do
  Policy policy;
};

struct LiveRanges {
  std::vector<Range> ranges;
  std::vector<uint32_t> ranges_at;  // by vreg: first range; one more entry at the end
  std::vector<UsePoint> uses;       // by vreg, sorted by position
  std::vector<uint32_t> uses_at;

  std::span<const Range> ranges_of(uint32_t v) const {
    return {ranges.data() + ranges_at[v], ranges_at[v + 1] - ranges_at[v]};
  }
};

LiveRanges find_live_ranges(const MachineFunction& m);

}  // namespace uptier::jit::machine
