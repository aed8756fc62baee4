// select_probes: probes that measure how well the condition of a selection could be predicted.
//
// A selection waits for its condition and for both of its operands, a branch for none of them while
// it is predicted. Which of the two is better, counts of blocks cannot tell. So after each
// selection that its loop may wait for stands `probe value C own turns`, which counts not C but
//
//   2 * (C the last time) + (C now)         each 0 or 1; 0 before the first execution
//
// in the slab of the thread: [last, n0, n1, n2, n3]. It is published as a value site with at most
// four values, of which files, merge and overlap know nothing special: 0 and 3 are executions at
// which the condition was what it had been, 1 and 2 those at which it changed. Between two bursts
// the last one is old, which is one pair in `burst`.
//
// A loop may wait for a selection that says where an access in a loop goes, when
//
//   it lies on a cycle of the loop's values: what is selected depends on what was selected; or
//   something in the loop is written: what was selected may be read in the next round through memory
//
// A selection of values alone is left out: a round in which one follows another takes a cycle for it,
// and what a misprediction takes is more (greatest of bench/selects.py).
//
// A compiler reads what was counted from the selection itself (Inst::imm), where note_turns() has
// put it: so it goes wherever the selection is copied to. Short branches have such probes in front of
// them (branch_probes.h).
//
//   Thread: none of their own. Cost: linear in functions with a selection in a loop; one look at
//   each instruction in others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jit/analysis/loop_forest.h"
#include "jit/ir/function.h"
#include "jit/ir/turns.h"

namespace uptier::jit {

// Selections of a method whose conditions are observed, at most; those in inner loops first.
inline constexpr size_t kMostSelectProbes = 16;
// From so many executions on what a probe has seen is believed.
inline constexpr uint64_t kLeastTurns = 256;
// Returns whether there may be such: a loop and a selection, wherever they are. Without, nobody has to know
// where loops lie.
bool selects_in_loops(const Function& f);

// Returns the selections that a loop may wait for, in layout order. `f` in build order, `forest` its
// loops.
std::vector<InstId> awaited_selects(const Function& f, const LoopForest& forest,
                                    size_t most = kMostSelectProbes);

// Puts a probe after each of them, in a function that has been numbered. Their sites come after
// all others. Nothing where there are such probes.
void place_select_probes(Function& f, const LoopForest& forest);

// Returns the sites of such probes, in layout order.
std::vector<SiteId> turn_sites(const Function& f);

// Writes into the selections and branches of a function what was seen of their conditions, where that
// is enough. `f` as it was when the probes were placed.
void note_turns(Function& f, std::span<const SelectTurns> seen);

}  // namespace uptier::jit
