// Frame memory: words of a function's own frame; nothing outside of the function can reach them.
#pragma once

#include "jit/ir/function.h"

namespace uptier::jit {

// Returns whether an instruction stores to the frame's memory. Such a store may be between a guard
// and its frame state.
inline bool stores_in_frame(const Function& f, const Inst& i) {
  if (i.op != Opcode::kStore || i.args.size != 2) return false;
  InstId base = f.value(f.args(i)[1]).inst;
  return base.valid() && f.inst(base).op == Opcode::kFrameMemory;
}

}  // namespace uptier::jit
