// DeoptPoints: the places of baseline code that optimized code may leave to, and what baseline code
// needs there.
//
//   point k           the start of block k of the build order
//   point blocks + n  right after the n-th frame_state that a guard leaves to, in build order
//   then              where the n-th call returns, in build order: of a method, not of the host's
//
// What is live at a point has a canonical slot there (see frame_layout.h); constants have none and
// are made again. Nothing between a frame_state and its guards writes, so what ran in between may
// run a second time.
//
// A return is where the frame of a caller goes on whose callee was inlined, and has left: the
// callee's frame is made below it, with the return address of the call.
//
// Exits are numbered too, the same in every version: guard n of the build order is exit n, exit
// guards + k is block k, left because it was never expected to run, and exit guards + blocks + n is
// the n-th value site, left because its value was another one than expected.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/analysis/liveness.h"
#include "jit/ir/function.h"

namespace uptier::jit {

// A frame_state that has a guard.
struct StatePoint {
  InstId state;
  Block block;
  uint32_t place = 0;  // of the state in its block
  uint32_t point = 0;
  std::vector<Value> live;  // after it, no constants; sorted
};

// `f` as it was built, in build order. Cost: linear in the blocks that have guards.
std::vector<StatePoint> state_points(const Function& f, const Liveness& live);

// A call that returns to a point.
struct CallPoint {
  InstId call;
  uint32_t point = 0;
  std::vector<Value> live;  // after it, neither constants nor its result; sorted
};

// Returns whether calls of this kind are points.
inline bool returns_to_point(Opcode op) {
  Shape s = info(op).shape;
  return s == Shape::kCall || s == Shape::kCallIndirect;
}

// `f` as it was built, in build order; `states` are its state_points(). Cost: linear in the blocks
// that have calls.
std::vector<CallPoint> call_points(const Function& f, const Liveness& live, size_t states);

// Returns what baseline code needs at the start of a block: parameters and what is live into it,
// without constants.
std::vector<Value> live_at_start(const Function& f, const Liveness& live, Block b);

// Returns the number of guards of a function as it was built.
uint32_t count_guards(const Function& f);

// Returns the probes that the host has put on integers, `value` and `range`, in build order.
std::vector<InstId> value_probes(const Function& f);

// Returns the number of the point that the first call returns to.
inline uint32_t first_call_point(const Function& f, size_t states) {
  return static_cast<uint32_t>(f.layout.size() + states);
}

}  // namespace uptier::jit
