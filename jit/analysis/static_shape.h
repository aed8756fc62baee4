// StaticShape: how often each block of a body runs, from the code alone.
//
// Branches are taken as likely as edge_shares.h has them without counts, and a loop header runs ten times
// as often as it is reached from outside. So shares of blocks are rough, but a block that every call runs
// is right.
#pragma once

#include <cstdint>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

struct StaticShape {
  std::vector<float> per_call;  // by block site - 1: executions for each call
  std::vector<bool> in_loop;    // likewise: in a loop of any depth
  float headers_per_call = 0;   // the sum of per_call over loop headers
};

// `f` is in build order: its blocks in layout have the sites 1, 2, ... Near linear.
StaticShape static_shape(const Function& f);

}  // namespace uptier::jit
