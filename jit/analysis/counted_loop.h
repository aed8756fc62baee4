// CountedLoop: a loop that repeats until a variable, which grows by the same step in each
// iteration, reaches a limit.
//
//     loop(i):
//       ...
//       i' = add i, step
//       branch (lt_s i', limit), loop(i'), out
//
// The branch may test `i` before or after it has grown; the loop may have other exits as well.
#pragma once

#include <optional>

#include "jit/analysis/loops.h"

namespace uptier::jit {

struct CountedLoop {
  Block latch;     // its branch tests the variable, and leads back or out
  uint32_t back;   // the index in Function::edges of the edge that leads back
  Value variable;  // a parameter of the header
  uint32_t index;  // the index of that parameter
  Value step;      // the step; from outside of the loop, or a constant
  Opcode test;     // continues while variable `test` limit: an order, or kNe
  Value limit;     // from outside of the loop, or a constant; none: 0
  std::optional<uint64_t> constant_step;
};

// Returns whether a value is the same in all iterations.
bool is_invariant(const Function& f, const LoopNest& n, uint32_t loop, Value v);

// Returns the bits of a constant.
std::optional<uint64_t> constant_of(const Function& f, Value v);

// Cost: constant.
std::optional<CountedLoop> find_counted_loop(const Function& f, const ControlFlow& c,
                                             const LoopNest& n, uint32_t loop);

}  // namespace uptier::jit
