// Condition: what it means that a value is not 0, or is.
//
//   lt_s a, b            a < b
//   ge_s a, b            a < b does not hold
//   eqz (gt_u a, b)      a <= b
//   anything else        the value is not 0
//
// Comparisons are told by what is compared, not by who did it, in five kinds of which the others
// are the opposites.
//
//   Thread: none of its own. Cost: the eqz's that are looked through.
#pragma once

#include "jit/ir/function.h"

namespace uptier::jit {

// `op` is kEq, kLtS, kLtU, kLeS or kLeU; or kSelect for whether `a` is not 0.
struct Condition {
  Opcode op = Opcode::kSelect;
  Type type = Type::kI32;
  Value a, b;
  bool holds = true;  // or its opposite
};

// Returns what it means that `v` is not 0 (`holds`), or that it is.
Condition condition_of(const Function& f, Value v, bool holds);

}  // namespace uptier::jit
