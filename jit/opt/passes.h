// The passes of the optimizing compiler. Each takes a verified Function and leaves it verified.
//
// Laws of every pass:
//   - The function computes, traps on and writes the same as before.
//   - A pass may be left out or run twice.
//   - Frequencies decide speed only, never correctness.
//   - Block probes are rows of a table. They stay with their block, and are dropped with it.
//   - In a copy that observes values, their probes keep their order relative to traps, stores and calls.
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

// The number of observed executions of a place from which on passes rely on its counts.
constexpr float kLeastSeen = 32;

// Argument specialization: replaces parameters by the constants that calls are known to pass. Calls
// with other values must not reach this code: see code/value_guard.h.
void specialize_params(Function& f, std::span<const ParamValue> values);

// Removes instructions that only baseline code needs: loop_header, and the values of frame_state
// and of probes.
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

// Jump threading and loop rotation: copies short blocks that end in a branch or switch to the
// predecessors that decide it, and copies the test at the top of a loop to its bottom.
void jump_threading(Function& f);

// Full loop unrolling: writes out every iteration of a loop if constants show that it has few.
void full_unroll(Function& f, const BlockCounts& counts);

// Loop peeling: copies the first iterations of inner loops that iterate once or twice by the
// counts, and the first iteration of loops that load or check the same in each iteration.
void peel_loops(Function& f, const BlockCounts& counts);

// Runtime loop unrolling: small inner loops that iterate often by the counts run groups of
// iterations with one test per group. Returns whether there was such a loop.
bool runtime_unroll(Function& f, const BlockCounts& counts);

// Loads and stores a number as the type that it is computed with, if a bitcast shows another type.
void retype_accesses(Function& f);

// Loop-idiom recognition: replaces short loops that fill or copy element by element by one
// operation for all iterations but the last, if there are many. `counting`: skips loops with a
// block probe.
void loop_idiom(Function& f, const BlockCounts& counts, bool counting);

// If-conversion: replaces a branch around little work by selections, if it was observed to go
// either way. Removes blocks with their probes, so do not run it on code that counts.
void if_conversion(Function& f, const BlockCounts& counts);

// Moves the check that a value is 0 or 1, in front of a branch on that value, to one of its edges.
void split_guards(Function& f, const BlockCounts& counts);

// Switch lowering: compares with the likely cases first, and with all cases if there are few,
// instead of using a jump table.
void switch_lowering(Function& f, const BlockCounts& counts);

// Tail duplication: copies short blocks that return to the blocks that jump to them, if the profile
// has seen those often.
void tail_duplication(Function& f, const BlockCounts& counts);

// Drops blocks that cannot be reached from the entry.
void remove_unreachable(Function& f);

// Redundant phi elimination: removes block parameters that can only have one value.
void remove_redundant_phis(Function& f);

// Global value numbering: replaces an instruction by an equal one that dominates it. Covers pure
// operations, operations that can only trap, and invariant loads.
void gvn(Function& f);

// Store-to-load forwarding, redundant-load elimination and dead-store elimination. `counting`: block
// counts must be exact up to a trap.
void store_to_load_forwarding(Function& f, bool counting);

// Merges counts of fuel (frontend/add_fuel.h) with nothing observable between them into the last
// one: only that one stores, and tests whether the fuel is used up.
void merge_fuel(Function& f);

// Moves invariant loads through a pointer known at the entry to the entry.
void hoist_invariant_loads(Function& f);

// Loop-invariant code motion of loads: moves the loads at the start of each iteration, from places
// that the loop does not write, in front of the loop. `counting`: block counts must be exact up to
// a trap.
void licm_loads(Function& f, bool counting);

// Loop-invariant code motion of multiplications and other slow operations.
void licm(Function& f);

// Conditional elimination: drops guards, traps and branches whose condition a dominating one has
// already decided.
void conditional_elimination(Function& f);

// Value range propagation: replaces comparisons, branches, checks and sign tests that the intervals
// of values decide (analysis/ranges.h). Returns whether there were any.
bool value_range_propagation(Function& f);

// Strength reduction: in short loops, a value computed from a variable that grows by a constant
// becomes a variable of its own.
void strength_reduction(Function& f);

// Constant hoisting: keeps 64-bit constants that short loops store in registers. Must run after all
// passes that simplify.
void constant_hoisting(Function& f);

// Folds the constant of an index into the offset of the access, if an earlier access proves that
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
