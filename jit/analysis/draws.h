// draws: tells whether executions of a site enter a sample with a sampled call, or with an
// iteration that a burst counts.
//
// A sampled frame stands for its call up to its first loop header. From there on, each arrival at a
// header is sampled on its own, together with the code up to the next header. So a block belongs to
// calls if it is reachable from the entry without passing a header, to iterations if it is
// reachable from a header, and to either if both hold.
#pragma once

#include <vector>

#include "jit/ir/function.h"
#include "profile/data/estimate.h"

namespace uptier::jit {

struct SiteDraws {
  std::vector<profile::Draw> blocks;  // by block site - 1
  std::vector<profile::Draw> edges;   // by site of kEdge - 1: the draw of its source block
  std::vector<profile::Draw> sites;   // by site - block_sites - 1: the draw of its block
};

// `f` is in build order. Linear.
SiteDraws find_draws(const Function& f);

}  // namespace uptier::jit
