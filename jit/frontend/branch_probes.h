// branch_probes: probes that measure how well short branches could be predicted.
//
// A short branch (short_branches.h) may become a selection, which waits for its condition and never
// mispredicts. Whether that is better, counts of its ways cannot tell: a condition that is true in
// half of all executions may change every time, or twice in all. So in front of such a branch stands
// `probe value C own turns branch`, as after selections (select_probes.h), with the same words, values and
// rules; of loops within loops the inner ones' come first where there are more than kMostBranchProbes.
//
// A compiler reads what was counted from the branch itself (Inst::imm, turns_of), where note_turns()
// has put it.
//
// The probe uses what the branch uses after it, so frames are alike with it and without; a plan may
// come late. Copies that do not count read through it (baseline/baseline_compiler.cc).
//
//   Thread: none of its own. Cost: near linear.
#pragma once

#include <cstddef>
#include <vector>

#include "jit/analysis/loop_forest.h"
#include "jit/ir/function.h"

namespace uptier::jit {

// Branches of a method whose conditions are observed, at most.
inline constexpr size_t kMostBranchProbes = 16;

// Returns the blocks that end with a short branch whose condition is not a constant, in layout order.
// `f` in build order, `forest` its loops.
std::vector<Block> observed_branches(const Function& f, const LoopForest& forest,
                                     size_t most = kMostBranchProbes);

// Puts a probe in front of each of them, in a function that has been numbered. Their sites come
// after all others. Nothing where there is one that asks the same.
void place_branch_probes(Function& f, const LoopForest& forest);

}  // namespace uptier::jit
