// draws: with what the executions of a body's sites come into a sample: with a sampled call, or
// with an iteration that a burst counts.
//
// A sampled frame counts for its call up to its first loop header; from there on each arrival at a
// header is drawn for itself, with all up to the next. So a block belongs to calls if it can be
// reached from the entry past no header, to iterations if it can be reached from a header, and to
// either if both.
#pragma once

#include <vector>

#include "jit/ir/function.h"
#include "profile/data/estimate.h"

namespace uptier::jit {

struct SiteDraws {
  std::vector<profile::Draw> blocks;  // by block site - 1
  std::vector<profile::Draw> edges;   // by site of kEdge - 1: that of the block it comes from
  std::vector<profile::Draw> sites;   // by site - block_sites - 1: that of its block
};

// `f` is in build order. Linear.
SiteDraws find_draws(const Function& f);

}  // namespace uptier::jit
