// The passes of the optimizing compiler: each takes a verified Function and leaves one behind.
//
// A pass may be left out or repeated; none changes what the function computes, traps on or writes,
// and none trusts a frequency for more than speed. Probes of blocks are rows of a table here: they
// stay with their block while it lives and are dropped with it. So are those that look at a value,
// in a copy that observes: they stay in their order among what traps, writes and calls.
//
//   Thread: none of their own. Cost: near linear in the size of the function.
#pragma once

#include <span>
#include <vector>

#include "jit/analysis/frequencies.h"
#include "jit/ir/function.h"
#include "jit/ir/param_value.h"
#include "jit/probes/probe_plan.h"

namespace uptier::jit {

// Makes parameters of the function the constants that they are taken to be. What is entered with
// others must not come here: see code/value_guard.h.
void assume_params(Function& f, std::span<const ParamValue> values);

// Drops what only baseline code needs: loop_header, and the values of frame_state and of probes.
void strip_patchpoints(Function& f);
// The same, but for the values of probes that have words in the plan, which may be null.
void strip_unobserved(Function& f, const ProbePlan* observed);

// Finds what is constant wherever the code that is ever reached defines it, conditions included.
void propagate_constants(Function& f);

// Applies identities of integer arithmetic, puts constants on the right, and replaces
// multiplications and unsigned divisions by powers of two.
void simplify_arithmetic(Function& f);

// Replaces divisions by constants with a multiplication.
// Source: Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994.
void reduce_divisions(Function& f);

// Replaces calls that copy or fill a few bytes, as many as a constant says, by loads and stores.
void expand_bulk(Function& f);

// Replaces branches whose way is known by jumps, and appends a block to its only predecessor when
// that one goes nowhere else. Drops unreachable blocks.
void fold_branches(Function& f);

// Copies short blocks that end in a choice to where their way is known, and the tests of loops from
// the top to the bottom.
void duplicate_tails(Function& f);

// Writes out loops that go round a few times only, by their constants.
void unroll_loops(Function& f, const BlockCounts& counts);

// Writes out the first rounds of inner loops that go round once or twice, by the counts, and the
// first round of those that load or ask the same in each.
void peel_loops(Function& f, const BlockCounts& counts);

// Makes groups of rounds with one test of small inner loops that go round often, by the counts.
// Returns whether there was one.
bool unroll_long_loops(Function& f, const BlockCounts& counts);

// Loads and stores numbers as the kind that they are computed with, not as the bits of another.
void retype_accesses(Function& f);

// Fills and copies by one operation what short loops store element by element, all rounds but the
// last, when there are many. `counting`: loops with a block probe are left as they are.
void store_in_bulk(Function& f, const BlockCounts& counts, bool counting);

// Replaces branches that are measured to go either way, around little work, by selections. Blocks
// go with their probes, so that code that counts is to be left as it is.
void convert_branches(Function& f, const BlockCounts& counts);

// Asks whether a value is 0 or 1 on one way only of a branch on it.
void split_guards(Function& f, const BlockCounts& counts);

// Compares with the likely cases of a switch first, and with all of them when they are few.
void lift_cases(Function& f, const BlockCounts& counts);

// Copies short blocks that return to those that jump to them, where these were often seen.
void copy_returns(Function& f, const BlockCounts& counts);

// Drops blocks that the entry does not reach from the layout.
void remove_unreachable(Function& f);

// Removes block parameters that can only be one value.
void prune_params(Function& f);

// Replaces an instruction by an equal one that dominates it: pure operations, those that can only
// trap, and loads of places that never change.
void merge_common(Function& f);

// Replaces loads by what was last stored to or loaded from the place, and drops stores that nobody
// can read. `counting`: what is counted up to a trap is exact.
void forward_memory(Function& f, bool counting);

// Moves loads of places that never change, through a pointer known at the entry, to the entry.
void hoist_invariants(Function& f);

// Moves loads that each round of a loop begins with, of places that it does not write, in front of
// it. `counting`: what is counted up to a trap is exact.
void hoist_loads(Function& f, bool counting);

// Moves multiplications, and what else takes long, out of the loops in whose rounds it is the same.
void hoist_costly(Function& f);

// Drops guards, traps and branches whose condition was decided before.
void settle_conditions(Function& f);

// Replaces what the intervals of values decide: comparisons, branches, checks, signs. See ranges.h.
// Returns whether there was any.
bool settle_ranges(Function& f);

// Makes variables of their own of what short loops compute from a variable that grows by a constant.
void reduce_strength(Function& f);

// Keeps 64-bit constants that short loops store in registers. Behind all that simplifies.
void keep_constants(Function& f);

// Makes sums with an index parts of the address behind an access that says they do not wrap.
void fold_offsets(Function& f);

// Removes instructions and block parameters that nothing needs.
void remove_dead(Function& f);

// Moves operations on one value behind the calls that stand between them and their only use.
void sink_past_calls(Function& f);

// Orders the blocks: loops contiguous, the likely way straight on, cold blocks last. Dominators
// come before what they dominate.
void layout_blocks(Function& f, const LoopNest& n, const Frequencies& q);

}  // namespace uptier::jit
