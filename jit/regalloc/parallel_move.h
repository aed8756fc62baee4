// parallel_move: an order for moves that happen at once.
//
// A move is done when nobody still reads its destination. When only cycles are left, one source is
// saved in the scratch place, which opens its cycle. Constants come last.
#pragma once

#include <span>
#include <vector>

#include "jit/regalloc/allocation.h"

namespace uptier::jit::machine {

// The places that open cycles; either holds a value of either class, but moves from memory to
// memory pass through the vector one. Not places of any move.
inline constexpr Location kCycleScratch = Location::reg(kGeneralScratch);
inline constexpr Location kVectorCycleScratch = Location::reg(kFloatScratch);

// Returns moves (gap and phase are not set) that do one by one what `moves` do at once. No two
// destinations are equal. Cost: quadratic in the number of moves that wait for each other.
std::vector<Move> sequentialize(std::span<const Move> moves);

}  // namespace uptier::jit::machine
