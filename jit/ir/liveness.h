// Liveness: which values each block needs on entry.
//
// Found by walking from each use up to the definition (Boissinot et al., "Fast liveness checking",
// the path-exploration form): the cost is the size of the answer, not blocks x values.
#pragma once

#include <span>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

// A set of values for each block, all in one array. Each is sorted by value index.
class ValueSets {
 public:
  // Takes (block, value) pairs whose values rise.
  struct Member {
    uint32_t block;
    Value value;
  };
  ValueSets() = default;
  ValueSets(size_t blocks, std::span<const Member> members);

  std::span<const Value> operator[](size_t block) const {
    return {values_.data() + first_[block], first_[block + 1] - first_[block]};
  }

 private:
  std::vector<uint32_t> first_;  // by block, and the end of the last
  std::vector<Value> values_;
};

struct Liveness {
  // By Block::index(): values defined elsewhere that are used in the block or after it. A block's
  // own parameters are not in its set.
  ValueSets live_in;
};

// `f` must pass the verifier.
Liveness compute_liveness(const Function& f);

}  // namespace uptier::jit
