// Liveness: the values that each block needs on entry.
//
// Found by walking from the uses up to the definitions (Boissinot et al., "Fast liveness checking",
// the path-exploration form), 64 values at a time: a block is visited again only for values that
// are new to it, so the cost is at most the size of the answer, not blocks x values.
//
// The walk that finds the uses also records where each value is defined and used, in positions: a
// block's start and its instructions are counted in layout order, from 1. The layout of frames
// needs that, and would otherwise have to repeat the walk.
#pragma once

#include <span>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

// A set of values for each block, all in one array. Each is sorted by value index.
class ValueSets {
 public:
  // The members among 64 values for one block: bit k stands for candidates[first + k].
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

// The definition of a value, and the last position that uses it; empty if it is never defined.
struct Lifetime {
  Block block;
  uint32_t start = 0;  // a parameter's is its block's start
  uint32_t end = 0;    // a parameter is written on entry, so this is at least its block's start
};

// The positions of a block: its start, and its last instruction.
struct BlockPositions {
  uint32_t first = 0, last = 0;
};

struct Liveness {
  // By Block::index(): values defined elsewhere and used in the block or after it. A block's own
  // parameters are not in its set.
  ValueSets live_in;
  std::vector<Value> crossing;            // the values in any of the sets, rising
  bool has_guards = false;                // whether the function has a guard
  std::vector<Lifetime> lifetimes;        // by Value::index()
  std::vector<BlockPositions> positions;  // by Block::index()
  // Values that are used in their defining block after a call that returns to a point (see
  // deopt_targets.h), once for each such use; includes parameters and constants.
  std::vector<Value> across_calls;
};

// `f` must pass the verifier.
Liveness compute_liveness(const Function& f);
// Returns whether the sets have more than `members` members in all; takes no longer than computing
// that many.
bool liveness_exceeds(const Function& f, uint64_t members);

}  // namespace uptier::jit
