// osr_entry: makes a variant of a function that is entered in the middle of a loop (on-stack
// replacement).
//
// The new entry has as parameters the values that are live at the loop's header and have a
// canonical slot. It recreates constants and invariant loads, and jumps to the header. The caller
// passes the contents of the slots, so the result is a function like any other: it verifies, and
// the interpreter runs it. If the loop is inside of other loops, the rest of the current iteration
// of each of those is copied, so that they stay loops: see peel_outer_loops.h.
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
// empty. Errors: kInvalidArgument if `f` has no such loop.
Result<OsrFunction> enter_at_loop(const Function& f, LoopId loop, const Liveness& live,
                                  const FrameLayout& frame, std::span<const uint64_t> counts = {});

// The same for a frame of the host's interpreter. The result has the parameters of `f` and one
// more, a ref to the host's slots. A value that is live at the header is a parameter, a constant,
// or loaded from the slot that the loop's frame state assigns to it.
//
// Errors: kInvalidArgument as above, kUnsupported for a value that is none of these.
Result<Function> enter_from_host(const Function& f, LoopId loop, const Liveness& live,
                                 std::span<const uint64_t> counts = {});

}  // namespace uptier::jit
