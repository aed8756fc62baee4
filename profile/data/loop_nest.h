// loop_nest.h: the cycles of nested loops, adjusted so that none takes more than the loop around
// it.
//
// Law: the loops inside of one together take at most what it takes itself. No clock is needed to
// know that. Measured numbers break it: a short execution is timed between fences, so it is charged
// its whole latency, part of which overlaps with its surroundings if it is not timed
// (docs/notes/0025); and the outer loop is timed without timing anything inside. So measured cycles
// x are moved to the nearest X that obey the law, each by its own uncertainty:
//
//     minimize  sum (x - X)^2 / v     subject to  sum of X inside <= X around, X >= 0
//     v = (half the interval / 1.96)^2 + (per_execution * entries)^2 + 1
//
// Inner loops have more executions, so they get most of the correction. If a number was moved, its
// interval becomes the union of the measured interval and the same interval around X.
//
// In a profile the estimates of a loop's words record the result: all entries are stood for, with X
// cycles. Such words add up, so a merge of profiles obeys the law as well. Source: projection on
// linear inequalities, Hildreth, Naval Research Logistics Quarterly 4 (1957).
#pragma once

#include <cstdint>
#include <span>

#include "uptier/profile.h"

namespace uptier::profile {

// The possible error of the cycles of one execution because it is timed: "some 30 cycles either
// way", docs/notes/0025.
inline constexpr double kCyclesPerExecution = 30;

struct NestedLoop {
  static constexpr uint32_t kOutermost = UINT32_MAX;

  uptier::Estimate cycles;
  double entries = 0;
  uint32_t within = kOutermost;  // index of the next loop outwards; no loop is within itself
};

// O(loops * depth), at most a hundred times.
void settle_nest(std::span<NestedLoop> loops, double per_execution = kCyclesPerExecution);

// A loop of a method that may have been timed.
struct LoopPlace {
  uptier::SiteId site = 0;
  uint32_t within = NestedLoop::kOutermost;  // as in NestedLoop: an index in the list
};

// Makes the estimates of a method's loops obey the law. `m` passes MethodProfile::check, and its
// loops have their original estimates (profile/data/estimate.h). Loops without a timed execution
// are not changed, and the loops inside of them count as inside the next one outwards.
void settle_loops(uptier::MethodProfile& m, std::span<const LoopPlace> loops,
                  double per_execution = kCyclesPerExecution);

}  // namespace uptier::profile
