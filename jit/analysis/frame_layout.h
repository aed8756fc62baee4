// FrameLayout: the canonical frame that all copies of a method's baseline code share.
//
// Every value that lives across a block boundary (live into some block, or a block parameter),
// across a frame_state that guards exit to, or across a call of a method, has a canonical 8-byte
// slot below rbp. Values whose lifetimes do not overlap may share a slot. Constants have none: code
// that needs a constant computes it again. The layout is a pure function of the Function in build
// order, so the plain copy, the instrumented copy and an OSR entry of optimized code agree on it
// without exchanging anything.
//
//   [rbp + 8]   return address
//   [rbp]       caller's rbp
//   [rbp - 8]   slab pointer (written by the instrumented copy only)
//   [rbp - 16]  first canonical slot, ...
//   below       memory of frame_memory
//
// An i32 or f32 fills the low half of its slot; the high half is undefined.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/analysis/liveness.h"
#include "jit/ir/function.h"

namespace uptier::jit {

inline constexpr int32_t kSlabSlot = -8;  // displacement from rbp

struct FrameLayout {
  // By Value::index(): displacement from rbp of the value's slot, 0 if it has none.
  std::vector<int32_t> slot;
  int32_t memory = 0;  // displacement of the memory of frame_memory; 0: there is none
  uint32_t size = 16;  // bytes below rbp, a multiple of 16
};

// Cost: linear except the sort of lifetimes by their start.
FrameLayout layout_frame(const Function& f, const Liveness& live);

}  // namespace uptier::jit
