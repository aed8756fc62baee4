// deopt_rows: shared by attach_deopts and BlockExits: rows that say where a guard exits to.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/analysis/frame_layout.h"
#include "jit/ir/function.h"

namespace uptier::jit {

// Returns the canonical slots of values; 0 for constants.
std::vector<int32_t> slots_of(const std::vector<Value>& values, const FrameLayout& frame);

// Returns, by Block::index(), whether a block lies in a loop.
std::vector<bool> blocks_in_loops(const Function& f);

// Gives a guard its row, and the values of its frames as operands after the condition.
void attach(Function& f, InstId guard, Deopt d, const std::vector<Value>& values);

}  // namespace uptier::jit
