// select_probes: probes that measure how well the condition of a `select` could be predicted.
//
// A select waits for its condition and for both of its operands; a branch waits for none of them
// while it is predicted. Counts of blocks cannot tell which is better. So each select that its loop
// may wait for has a `probe value C own turns` after it, which counts not C but
//
//   2 * (C the last time) + (C now)         each 0 or 1; 0 before the first execution
//
// in the slab of the thread: [last, n0, n1, n2, n3]. It is published as a value site with at most
// four values, and files, merge and overlap treat it like any other. Values 0 and 3 are executions
// at which the condition was the same as before, 1 and 2 executions at which it changed. Between
// two bursts the last condition is outdated, which affects one pair per `burst`.
//
// A loop may wait for a select that determines an address accessed in a loop, if
//
//   it lies on a cycle of the loop's values: the selected value depends on an earlier selected value; or
//   something in the loop writes memory: the selected value may be read in the next iteration
//
// A select on no address is left out: if one depends on another, an iteration takes one cycle for
// it, and a misprediction costs more (greatest of bench/selects.py).
//
// A compiler reads the counts from the select itself (Inst::imm), where note_turns() has put them:
// so copies of the select have them too. Short branches have such probes before them
// (branch_probes.h).
//
//   Thread: none of their own. Cost: linear in functions with a select in a loop; one look at each
//   instruction in others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jit/analysis/loop_forest.h"
#include "jit/ir/function.h"
#include "jit/ir/turns.h"

namespace uptier::jit {

// The most selects of a method whose conditions are observed; those in inner loops first.
inline constexpr size_t kMostSelectProbes = 16;
// The fewest executions for which the counts of a probe are used.
inline constexpr uint64_t kLeastTurns = 256;
// Returns whether there may be such a select: the function has a loop and a select anywhere. If
// not, the loops need not be found.
bool selects_in_loops(const Function& f);

// Returns the selects that a loop may wait for, in layout order. `f` is in build order, `forest`
// its loops.
std::vector<InstId> awaited_selects(const Function& f, const LoopForest& forest,
                                    size_t most = kMostSelectProbes);

// Puts a probe after each such select, in a numbered function. The sites of these probes come after
// all others. Does nothing if there are such probes.
void place_select_probes(Function& f, const LoopForest& forest);

// Returns the sites of such probes, in layout order.
std::vector<SiteId> turn_sites(const Function& f);

// Writes the observations of conditions into the selects and branches of a function, if there are
// enough. `f` as it was when the probes were placed.
void note_turns(Function& f, std::span<const SelectTurns> seen);

}  // namespace uptier::jit
