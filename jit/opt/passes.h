// The passes of the optimizing compiler: each takes a verified Function and leaves one behind.
//
// Laws of every pass:
//   - The function computes, traps on and writes the same as before.
//   - A pass may be left out or run twice.
//   - Frequencies decide speed only, never correctness.
//   - Block probes are rows of a table. They stay with their block, and are dropped with it.
//   - In a copy that observes, probes of values keep their order relative to traps, stores and calls.
//
// The order of the passes is in optimize.cc.
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

// Executions of a place that must have been observed before a pass relies on its counts.
constexpr float kLeastSeen = 32;

// Argument specialization: replaces parameters by the constants that calls are known to pass. Calls
// with other values must not reach this code: see code/value_guard.h.
void specialize_params(Function& f, std::span<const ParamValue> values);

// Removes what only baseline code needs: loop_header, and the values of frame_state and of probes.
void strip_patchpoints(Function& f);
// The same, but keeps the values of probes that have words in the plan. The plan may be null.
void strip_unobserved(Function& f, const ProbePlan* observed);

// Sparse conditional constant propagation, over parameters, conditions and reachable blocks.
void sccp(Function& f);

// Algebraic simplification: applies identities of integer arithmetic, puts constants on the right,
// and replaces multiplications and unsigned divisions by powers of two.
void simplify_arithmetic(Function& f);

// Replaces divisions by constants with a multiplication by a magic number.
// Source: Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994.
void division_by_constants(Function& f);

// Replaces calls that copy or fill a few bytes (a constant number of them) by loads and stores.
void expand_memcpy(Function& f);

// CFG simplification: replaces branches with a constant condition by jumps, merges a block into its
// only predecessor when that has no other successor, and drops unreachable blocks.
void simplify_cfg(Function& f);

// Jump threading and loop rotation: copies short blocks that end in a choice to the predecessors that
// decide it, and copies the test at the top of a loop to its bottom.
void jump_threading(Function& f);

// Full loop unrolling: writes out all rounds of a loop whose constants say that there are few.
void full_unroll(Function& f, const BlockCounts& counts);

// Loop peeling: writes out the first rounds of inner loops that go round once or twice by the counts,
// and the first round of loops that load or check the same in each round.
void peel_loops(Function& f, const BlockCounts& counts);

// Runtime loop unrolling: small inner loops that go round often by the counts run groups of rounds
// with one test a group. Returns whether there was such a loop.
bool runtime_unroll(Function& f, const BlockCounts& counts);

// Loads and stores a number as the type that it is computed with, where a bitcast says otherwise.
void retype_accesses(Function& f);

// Loop-idiom recognition: replaces short loops that fill or copy element by element by one operation
// for all rounds but the last, when there are many. `counting`: leaves loops with a block probe alone.
void loop_idiom(Function& f, const BlockCounts& counts, bool counting);

// If-conversion: replaces a branch around little work by selections, when it was measured to go
// either way. Removes blocks with their probes, so do not run it on code that counts.
void if_conversion(Function& f, const BlockCounts& counts);

// Moves the check that a value is 0 or 1, in front of a branch on that value, to one of its ways.
void split_guards(Function& f, const BlockCounts& counts);

// Switch lowering: compares with the likely cases first, and with all cases when there are few, in
// place of a jump table.
void switch_lowering(Function& f, const BlockCounts& counts);

// Tail duplication: copies short blocks that return to the blocks that jump to them, where the
// profile has often seen those.
void tail_duplication(Function& f, const BlockCounts& counts);

// Drops blocks that cannot be reached from the entry.
void remove_unreachable(Function& f);

// Redundant phi elimination: removes block parameters that can only have one value.
void remove_redundant_phis(Function& f);

// Global value numbering: replaces an instruction by an equal one that dominates it. Covers pure
// operations, those that can only trap, and loads of places that never change.
void gvn(Function& f);

// Store-to-load forwarding, redundant-load elimination and dead-store elimination. `counting`: block
// counts must be exact up to a trap.
void store_to_load_forwarding(Function& f, bool counting);

// Merges counts of fuel (frontend/add_fuel.h) that follow each other, with nothing observable between
// them, into the last one: only that stores, and tests whether it is used up.
void merge_fuel(Function& f);

// Moves loads of places that never change, through a pointer known at the entry, to the entry.
void hoist_invariant_loads(Function& f);

// Loop-invariant code motion of loads: moves loads that each round of a loop starts with, and that
// the loop does not write, in front of it. `counting`: block counts must be exact up to a trap.
void licm_loads(Function& f, bool counting);

// Loop-invariant code motion of multiplications and other slow operations.
void licm(Function& f);

// Conditional elimination: drops guards, traps and branches whose condition a dominating one has
// already decided.
void conditional_elimination(Function& f);

// Value range propagation: replaces comparisons, branches, checks and sign tests that the intervals
// of values decide (analysis/ranges.h). Returns whether there were any.
bool value_range_propagation(Function& f);

// Strength reduction: in short loops, what is computed from a variable that grows by a constant
// becomes a variable of its own.
void strength_reduction(Function& f);

// Constant hoisting: keeps 64-bit constants that short loops store in registers. Must run after all
// passes that simplify.
void constant_hoisting(Function& f);

// Folds the constant of an index into the offset of the access, where an earlier access proves that
// the sum does not wrap.
void fold_offsets(Function& f);

// Dead code elimination: removes instructions and block parameters that nothing needs.
void dce(Function& f);

// Code sinking: moves operations on one value past the calls between them and their only use.
void code_sinking(Function& f);

// Basic-block layout: keeps loops contiguous, puts the likely successor next and cold blocks last. A
// block stays before the blocks that it dominates.
void layout_blocks(Function& f, const LoopNest& n, const Frequencies& q);

}  // namespace uptier::jit
