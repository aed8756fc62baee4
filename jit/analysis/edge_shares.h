// EdgeShares: how the executions of a block share out among its edges, by index in
// Function::edges; those of one block add up to 1.
//
//   shape   a path that only traps gets a thousandth, leaving a loop a tenth of what stays
//   counts  flows along edges that agree with the counts of blocks: in turns, what comes into a
//           block and what leaves it is scaled to its count, beginning with shape * count
//
// What the counts say is as good as the samples after them: shape takes part with the weight of
// one sample. So a block that no sample has met is rare where many met its neighbours, and as
// likely as its shape says where few did.
//
// Counts need not agree with one another: bursts of samples meet some loops and miss others. Only
// the shares at a block are taken from them, never that one part of a body runs more than another.
//
// Source of the scaling: Deming and Stephan, "On a Least Squares Adjustment of a Sampled Frequency
// Table When the Expected Marginal Totals are Known", 1940.
#pragma once

#include <vector>

#include "jit/analysis/block_counts.h"
#include "jit/analysis/loops.h"

namespace uptier::jit {

// By shape where `counts` is empty. Cost: linear in the edges.
std::vector<float> edge_shares(const Function& f, const ControlFlow& d, const LoopNest& n,
                               const BlockCounts& counts);

}  // namespace uptier::jit
