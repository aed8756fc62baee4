// Condition: the meaning of "the value is not 0" or "the value is 0".
//
//   lt_s a, b            a < b
//   ge_s a, b            a < b does not hold
//   eqz (gt_u a, b)      a <= b
//   anything else        the value is not 0
//
// Two conditions are equal if they compare the same, whichever instruction does it. There are five
// kinds of comparison; the other comparisons are their opposites.
//
//   Thread: none of its own. Cost: the eqz's that are looked through.
#pragma once

#include "jit/ir/function.h"

namespace uptier::jit {

// `op` is kEq, kLtS, kLtU, kLeS or kLeU; or kSelect, which tests that `a` is not 0.
struct Condition {
  Opcode op = Opcode::kSelect;
  Type type = Type::kI32;
  Value a, b;
  bool holds = true;  // false: the opposite
};

// Returns the meaning of `v` != 0 (if `holds`), or of `v` == 0.
Condition condition_of(const Function& f, Value v, bool holds);

}  // namespace uptier::jit
