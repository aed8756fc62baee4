// inlined_counts: where an instrumented copy counts the blocks of bodies that were inlined into it.
//
// One word for each block that the passes have left a probe of, whatever copies of it there are, by
// rising body and site. Bodies are numbered in the order in which they were inlined, what was worth
// most first: those that kMostInlinedCounts has no room for are not counted, and so unknown.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/code/code.h"
#include "jit/ir/function.h"

namespace uptier::jit {

// 8 KiB for each thread and copy.
inline constexpr size_t kMostInlinedCounts = 1024;

// `f` is optimized; the words begin at `offset` of the slab.
std::vector<InlinedCount> place_inlined_counts(const Function& f, uint32_t offset);

// Returns the place of a block of an inlined body, or null.
const InlinedCount* find_inlined_count(const std::vector<InlinedCount>& counts, uint32_t body,
                                       SiteId site);

}  // namespace uptier::jit
