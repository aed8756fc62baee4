// LoopScope: what of a body lies in one of its loops.
#pragma once

#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

struct LoopScope {
  std::vector<bool> sites;  // by site - 1: of its blocks, and of calls and probes in them
  std::vector<bool> inner;  // by LoopId: whether it is a loop in it, not itself one of these
};

// `f` as it was built. Linear, except finding the loops.
LoopScope scope_of(const Function& f, LoopId loop);

}  // namespace uptier::jit
