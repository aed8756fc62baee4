// loop_nest.h: what nested loops took, so that none took more than the loop around it.
//
// Law: what the loops inside of one took together is at most what it took itself. That needs no clock.
// Measured numbers break it: a short execution is timed between fences, so it is charged its whole
// latency, of which a part overlaps with what is around it when nobody looks (docs/notes/0025), and the
// outer loop is timed with nothing timed inside. So measured cycles x are moved to the nearest X that
// obey the law, each by its own uncertainty:
//
//     minimize  sum (x - X)^2 / v     subject to  sum of X inside <= X around, X >= 0
//     v = (half the interval / 1.96)^2 + (per_execution * entries)^2 + 1
//
// Inner loops have more executions, so most of the correction is theirs. The interval of what was moved
// becomes the union of that which was measured and the same around X.
//
// In a profile the estimates of a loop's words say what was settled: as many executions as there were
// entries are stood for, of X cycles. Such words add up, so a merge of profiles obeys the law as well.
// Source: projection on linear inequalities, Hildreth, Naval Research Logistics Quarterly 4 (1957).
#pragma once

#include <cstdint>
#include <span>

#include "uptier/profile.h"

namespace uptier::profile {

// How far the cycles of one execution may be off because it is timed: "some 30 cycles either way",
// docs/notes/0025.
inline constexpr double kCyclesPerExecution = 30;

struct NestedLoop {
  static constexpr uint32_t kOutermost = UINT32_MAX;

  uptier::Estimate cycles;
  double entries = 0;
  uint32_t within = kOutermost;  // the place of the next loop outwards; no loop is within itself
};

// O(loops * depth), a hundred times at most.
void settle_nest(std::span<NestedLoop> loops, double per_execution = kCyclesPerExecution);

// A loop of a method that may have been timed.
struct LoopPlace {
  uptier::SiteId site = 0;
  uint32_t within = NestedLoop::kOutermost;  // as of NestedLoop, by its place in the list
};

// Has the estimates of a method's loops obey the law. `m` passes MethodProfile::check, and its loops
// are as they were estimated (profile/data/estimate.h). Those without a timed execution stay as they are,
// and what is inside of them lies in the next one outwards.
void settle_loops(uptier::MethodProfile& m, std::span<const LoopPlace> loops,
                  double per_execution = kCyclesPerExecution);

}  // namespace uptier::profile
