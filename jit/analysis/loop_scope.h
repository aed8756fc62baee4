// LoopScope: the sites and inner loops of a body that lie in one of its loops.
#pragma once

#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

struct LoopScope {
  SiteId header = 0;  // of the block at the start of the loop
  std::vector<bool>
      sites;  // by site - 1: whether it is a block of the loop, or a call or probe in one
  std::vector<bool> inner;  // by LoopId: whether it lies in the loop; false for the loop itself
};

// `f` as it was built. Linear, except finding the loops.
LoopScope scope_of(const Function& f, LoopId loop);

}  // namespace uptier::jit
