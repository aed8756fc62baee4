// osr_entry: the body of a function as seen from the middle of a loop.
//
// The new entry takes what lives at the loop's header as parameters, one for each value that has a
// canonical slot, makes constants and loads of what never changes again, and jumps to the header.
// Whoever enters passes the contents of the slots, so the result is a function like any other: it
// verifies, and the interpreter runs it. Where other loops are around, what is left of a round of
// each is a copy, so that they stay loops: see peel_outer_loops.h.
#pragma once

#include <span>
#include <vector>

#include "jit/analysis/frame_layout.h"
#include "jit/analysis/liveness.h"
#include "jit/ir/function.h"
#include "uptier/result.h"

namespace uptier::jit {

struct OsrFunction {
  Function function;
  std::vector<int32_t> slots;  // by parameter: displacement from rbp, see FrameLayout
  std::vector<Value> values;   // by parameter: the value of the original function
};

// `f` as it was built, with its liveness and frame; `counts`: executions by block site - 1, or
// empty. Errors: kInvalidArgument when `f` has no such loop.
Result<OsrFunction> enter_at_loop(const Function& f, LoopId loop, const Liveness& live,
                                  const FrameLayout& frame, std::span<const uint64_t> counts = {});

// The same for a frame of the host's interpreter. The result has the parameters of `f` and one
// more, a ref to the host's slots: what lives at the header is a parameter, a constant, or loaded
// from the slot that the loop's frame state has it in.
//
// Errors: kInvalidArgument as above, kUnsupported for a value that is none of these.
Result<Function> enter_from_host(const Function& f, LoopId loop, const Liveness& live,
                                 std::span<const uint64_t> counts = {});

}  // namespace uptier::jit
