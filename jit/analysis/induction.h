// Induction: values that change by the same amount in every iteration of a loop of one block.
//
//     b(p, q):                            iteration n:  p  =  p0 + 4 n
//       i = add p, 4                                    i  =  p0 + 4 + 4 n
//       j = shl i, 2                                    j  =  (p0 + 4) * 4 + 16 n
//       ...
//       branch c, b(i, q), out
//
// Everything is modulo the width of its type, so no sum can be wrong. The caller must check whether an
// i32 has wrapped around before it is extended.
//
//   Thread: none of its own. Cost: the definitions looked through, again for each question.
#pragma once

#include <optional>

#include "jit/ir/function.h"

namespace uptier::jit {

class Induction {
 public:
  // `loop`: a block that jumps to itself by the edge `back`, and is reached from elsewhere.
  Induction(const Function& f, Block loop, const Edge& back) : f_(f), loop_(loop), back_(back) {}

  // Returns by how much a value grows per iteration, as bits of its type: 0 if it is constant; none
  // if it does not grow by a constant.
  std::optional<uint64_t> step(Value v) const { return step(v, 0); }

  // Returns whether it is defined in the loop.
  bool inside(Value v) const { return f_.value(v).block == loop_; }

 private:
  std::optional<uint64_t> step(Value v, unsigned depth) const;
  std::optional<uint64_t> step_of_param(Value p) const;
  std::optional<uint64_t> added(Value v, Value to, unsigned depth) const;
  const Inst* def(Value v) const;

  const Function& f_;
  Block loop_;
  Edge back_;
};

}  // namespace uptier::jit
