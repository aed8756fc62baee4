// deopt_targets: the places of baseline code that optimized code may exit to, and the values that
// baseline code needs there.
//
//   point k           the start of block k of the build order
//   point blocks + n  right after the n-th frame_state that a guard exits to, in build order
//   then              the return of the n-th call of a method (not of the host), in build order
//
// Each value that is live at a point has a canonical slot there (see frame_layout.h), except
// constants, which are computed again. Nothing between a frame_state and its guards writes, so the
// instructions between may run a second time.
//
// A return point is for the frame of a caller whose inlined callee has exited: the callee's frame
// is made below it, with the return address of the call.
//
// Exits are numbered too, identically in every version: guard n of the build order is exit n; exit
// guards + k is at block k, which was never expected to run; and exit guards + blocks + n is at the
// n-th value site, whose value was not the expected one.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/analysis/liveness.h"
#include "jit/ir/function.h"

namespace uptier::jit {

// A frame_state that some guard exits to.
struct StatePoint {
  InstId state;
  Block block;
  uint32_t place = 0;  // of the state in its block
  uint32_t point = 0;
  std::vector<Value> live;  // after it, without constants; sorted
};

// `f` as it was built, in build order. Cost: linear in the blocks that have guards.
std::vector<StatePoint> state_points(const Function& f, const Liveness& live);

// A call that returns to a point.
struct CallPoint {
  InstId call;
  uint32_t point = 0;
  std::vector<Value> live;  // after it, without constants and its result; sorted
};

// Returns whether calls with this opcode are points.
inline bool returns_to_point(Opcode op) {
  Shape s = info(op).shape;
  return s == Shape::kCall || s == Shape::kCallIndirect;
}

// `f` as it was built, in build order; `states` is the number of its state_points(). Cost: linear
// in the blocks that have calls.
std::vector<CallPoint> call_points(const Function& f, const Liveness& live, size_t states);

// Returns the values that baseline code needs at the start of a block: its parameters and live-in
// values, without constants.
std::vector<Value> live_at_start(const Function& f, const Liveness& live, Block b);

// Returns the number of guards of a function as it was built.
uint32_t count_guards(const Function& f);

// Returns the host's probes on integers, `value` and `range`, in build order.
std::vector<InstId> value_probes(const Function& f);

// Returns the number of the point to which the first call returns.
inline uint32_t first_call_point(const Function& f, size_t states) {
  return static_cast<uint32_t>(f.layout.size() + states);
}

}  // namespace uptier::jit
