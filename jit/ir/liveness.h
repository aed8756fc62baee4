// Liveness: which values each block needs on entry.
//
// Found by walking from each use up to the definition (Boissinot et al., "Fast liveness checking",
// the path-exploration form): the cost is the size of the answer, not blocks x values.
#pragma once

#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

struct Liveness {
  // By Block::index(): values defined elsewhere that are used in the block or after it. A block's
  // own parameters are not in its set. Sorted by value index.
  std::vector<std::vector<Value>> live_in;
};

// `f` must pass the verifier.
Liveness compute_liveness(const Function& f);

}  // namespace uptier::jit
