// short_branches: branches around so little work that a `select` may replace them.
//
//     b: ... branch c, t, e
//     t: x = ...; jump j(x)      t, e, or both are blocks of their own; a path without one leads
//     e: y = ...; jump j(y)      from b to j
//
// t and e have no other predecessor and no parameters, and contain only constants, block probes and
// at most kMostShortInsts cheap operations: integers, pure, no multiplication or division.
//
// The pass that places probes on their conditions (select_probes.h) and the pass that converts them
// (if_conversion) both use this test, the first before and the second after all other passes over a
// body. So a probe is wasted if a later pass decides the branch or makes a path longer, and a
// branch whose path becomes short only later is not measured.
//
//   Thread: none of its own. Cost: constant per query.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

inline constexpr uint32_t kMostShortInsts = 3;  // on each path
// The most different integers that the paths may pass on.
inline constexpr uint32_t kMostShortSelects = 2;

// A path that has no block of its own is represented by the block of the branch.
struct ShortBranch {
  Block yes, no;
};

// Returns the number of edges that lead to each block, by Block::index(). Linear.
std::vector<uint32_t> count_arrivals(const Function& f);

// Returns the paths of the branch that ends `b`; nothing if it is no branch, or they are not short.
std::optional<ShortBranch> short_branch(const Function& f, Block b,
                                        std::span<const uint32_t> arrivals);

}  // namespace uptier::jit
