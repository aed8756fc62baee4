// parallel_move: a sequence for moves that happen at once.
//
// A move is done when no remaining move reads its destination. When only cycles are left, one
// source is saved in the scratch register, which opens its cycle. Constants come last.
#pragma once

#include <span>
#include <vector>

#include "jit/regalloc/allocation.h"

namespace uptier::jit::machine {

// The registers that open cycles. Either holds a value of either class, but moves from memory to
// memory pass through the vector one. No move names them.
inline constexpr Location kCycleScratch = Location::reg(kGeneralScratch);
inline constexpr Location kVectorCycleScratch = Location::reg(kFloatScratch);

// Returns moves (gap and phase are not set) that have, one by one, the effect of all `moves` at
// once. No two destinations are equal. Cost: quadratic in the number of moves that wait for each
// other.
std::vector<Move> sequentialize(std::span<const Move> moves);

}  // namespace uptier::jit::machine
