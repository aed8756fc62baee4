// branch_probes: probes that measure how well short branches could be predicted.
//
// A short branch (short_branches.h) may become a `select`, which waits for its condition and never
// mispredicts. Counts of its paths cannot tell whether that is better: a condition that is true in
// half of all executions may change every time, or only twice. So such a branch has a `probe value
// C own turns branch` before it, with the same words, values and rules as the probe of a select
// (select_probes.h). If there are more than kMostBranchProbes, the branches of inner loops come
// first.
//
// A compiler reads the counts from the branch itself (Inst::imm, turns_of), where note_turns() has
// put them.
//
// The probe uses the same value as the branch after it, so frames are the same with and without the
// probe, and it can be added late. Copies that do not count ignore it
// (baseline/baseline_compiler.cc).
//
//   Thread: none of its own. Cost: near linear.
#pragma once

#include <cstddef>
#include <vector>

#include "jit/analysis/loop_forest.h"
#include "jit/ir/function.h"

namespace uptier::jit {

// The most branches of a method whose conditions are observed.
inline constexpr size_t kMostBranchProbes = 16;

// Returns the blocks that end with a short branch whose condition is not a constant, in layout
// order. `f` is in build order, `forest` its loops.
std::vector<Block> observed_branches(const Function& f, const LoopForest& forest,
                                     size_t most = kMostBranchProbes);

// Puts a probe in front of each such branch, in a numbered function. The sites of these probes come
// after all others. Adds none if there is one on the same condition.
void place_branch_probes(Function& f, const LoopForest& forest);

}  // namespace uptier::jit
