// edge_shares: the shares in which the executions of a block are distributed among its edges, by
// index in Function::edges. The shares of one block add up to 1.
//
//   shape   a path that only traps gets a thousandth, an exit from a loop a tenth of another edge
//   counts  flows along edges that agree with the counts of blocks: the flow into a block and the flow
//           out of it are scaled to its count alternately, beginning with shape * count
//
// Counts are only as good as the number of samples that they come from: the shape enters with the
// weight of one sample. So a block that no sample has met is rare if many samples met its
// neighbours, and as likely as its shape suggests if few did.
//
// Counts need not be consistent: bursts of samples meet some loops and miss others. They only
// determine the shares at a block, never that one part of a body runs more often than another.
//
// Source of the scaling: Deming and Stephan, "On a Least Squares Adjustment of a Sampled Frequency
// Table When the Expected Marginal Totals are Known", 1940.
#pragma once

#include <vector>

#include "jit/analysis/block_counts.h"
#include "jit/analysis/loops.h"

namespace uptier::jit {

// By shape if `counts` is empty. Cost: linear in the edges.
std::vector<float> edge_shares(const Function& f, const ControlFlow& d, const LoopNest& n,
                               const BlockCounts& counts);

}  // namespace uptier::jit
