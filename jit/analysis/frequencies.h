// Frequencies: estimates how often each block runs per entry of the function.
//
// Edges share the frequency of their block (edge_shares.h). Without counts (by site, from a
// profile) a loop header runs ten times as often as it is reached from outside. With counts
//
//   iterations   1 / the share of an iteration that does not come back to the header, at most 30
//   header       iterations * the flow into the loop
//   its exits    together the flow into the loop
//
// so a block runs as often as the paths to it do, whether or not samples met it.
//
// A profile is untrusted advice: any counts give finite frequencies in [1e-6, 1e12], and no pass
// may be wrong for any frequencies, only slow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jit/analysis/block_counts.h"
#include "jit/analysis/loops.h"

namespace uptier::jit {

struct Frequencies {
  std::vector<float> of;  // by Block::index(); 0 for unreachable blocks
  std::vector<bool>
      cold;  // by Block::index(): rare for its place; holds for all blocks that it dominates
  std::vector<float> shares;  // by index in Function::edges, see edge_shares.h
  float at(Block b) const { return of[b.index()]; }
};

Frequencies estimate_frequencies(const Function& f, const ControlFlow& d, const LoopNest& n,
                                 const BlockCounts& counts);

}  // namespace uptier::jit
