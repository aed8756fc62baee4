// The law of block probes, checked: a pass, or the whole compiler, changes which instructions run, and yet
//
//   the executions of a block's probes (or of its rows) = the executions of the block,
//   or the block is unknown, and they are fewer
//
// Both sides are counted for the same inputs: the left one in the body as a pass left it (by the interpreter)
// or in machine code (by single steps), the right one in the body as it was built.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jit/frontend/interpret.h"
#include "jit/ir/function.h"

namespace uptier::jit {

// By MethodId::index(), then by block site - 1.
using BlockExecutions = std::vector<std::vector<uint64_t>>;
using BlockSet = std::vector<std::vector<bool>>;

// Returns what an interpreter has counted so far. `built`: the functions as they were built, whose blocks
// count; of functions beyond the interpreter's there is nothing.
BlockExecutions block_executions(const Interpreter& ran, const Module& built);
// Returns the empty set of the blocks of these functions.
BlockSet no_blocks(const Module& built);

// Adds the blocks that `f`, a body of method `self` after some passes, does not know: some body in it has no
// probe of the block, or only a part of one.
void add_unknown_blocks(const Function& f, MethodId self, BlockSet& to);

struct ProbeLaw {
  bool holds = true;
  // The first block that breaks the law.
  MethodId method;
  SiteId site = 0;
  uint64_t got = 0, want = 0;
  uint64_t lost = 0;  // executions of unknown blocks that nothing counts

  // Returns "block 3 has 10 of 12 executions".
  std::string text() const;
};

// Compares; both sides have the same shape.
ProbeLaw check_probe_law(const BlockExecutions& want, const BlockExecutions& got,
                         const BlockSet& unknown);

}  // namespace uptier::jit
