// short_branches: branches around so little work that a selection may stand in for them.
//
//     b: ... branch c, t, e
//     t: x = ...; jump j(x)      t, e, or both are blocks of their own; a way without one leads
//     e: y = ...; jump j(y)      from b to j
//
// t and e have no other way in and no parameters, and hold nothing but constants, probes of blocks
// and at most kMostShortInsts cheap operations: integers, pure, no multiplication or division.
//
// Who places probes on their conditions (select_probes.h) and who converts them (if_conversion)
// ask the same question here, before and after all else that is done to a body. So a probe is wasted
// where a later pass decides the branch or makes a way longer, and a branch is not measured whose way
// becomes short only then.
//
//   Thread: none of its own. Cost: constant per question.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

inline constexpr uint32_t kMostShortInsts = 3;  // of each way
// Different integers that the ways may pass on.
inline constexpr uint32_t kMostShortSelects = 2;

// A way that has no block of its own is the block of the branch.
struct ShortBranch {
  Block yes, no;
};

// Returns by Block::index() how many edges lead to each block. Linear.
std::vector<uint32_t> count_arrivals(const Function& f);

// Returns the ways of the branch that ends `b`; nothing where it is none, or they are not short.
std::optional<ShortBranch> short_branch(const Function& f, Block b,
                                        std::span<const uint32_t> arrivals);

}  // namespace uptier::jit
