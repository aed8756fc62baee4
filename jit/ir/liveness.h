// Liveness: which values each block needs on entry.
//
// Found by walking from the uses up to the definitions (Boissinot et al., "Fast liveness checking",
// the path-exploration form), 64 values at a time: a block is visited again only for values that
// are new to it, so the cost is at most the size of the answer, not blocks x values.
#pragma once

#include <span>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

// A set of values for each block, all in one array. Each is sorted by value index.
class ValueSets {
 public:
  // What a block has of 64 values: bit k stands for candidates[first + k].
  struct Part {
    uint32_t block;
    uint32_t first;
    uint64_t bits;
  };
  ValueSets() = default;
  // Candidates rise, and so do the parts of each block.
  ValueSets(size_t blocks, std::span<const Value> candidates, std::span<const Part> parts);

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
  std::vector<Value> crossing;  // the values that are in any of the sets, rising
  bool has_guards = false;      // whether the function has a guard
};

// `f` must pass the verifier.
Liveness compute_liveness(const Function& f);

}  // namespace uptier::jit
