// Frequencies: how often each block runs per entry of the function, as far as anyone knows.
//
// With counts (by site, from a profile): count / count of the entry. Without: forward edges share
// the frequency of their block (a path that only traps gets a thousandth, leaving a loop a tenth),
// and a loop header runs ten times as often as it is reached from outside.
//
// With counts too, a loop header runs no more than ten times as often as its loop is entered: what
// lies in the loop keeps its share, but no loop outweighs all that is around it.
//
// A profile is untrusted advice: any counts give finite frequencies in [1e-6, 1e12], and no pass
// may be wrong for any frequencies, only slow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jit/opt/block_counts.h"
#include "jit/opt/loops.h"

namespace uptier::jit {

struct Frequencies {
  std::vector<float> of;   // by Block::index(); 0 for unreachable blocks
  std::vector<bool> cold;  // by Block::index(): rare for where it is; holds for all it dominates
  float at(Block b) const { return of[b.index()]; }
};

Frequencies estimate_frequencies(const Function& f, const ControlFlow& d, const LoopNest& n,
                                 const BlockCounts& counts);

}  // namespace uptier::jit
