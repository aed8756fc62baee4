// optimize: the passes in order, for one compilation.
#pragma once

#include <cstdint>
#include <span>

#include "jit/ir/function.h"
#include "jit/opt/frequencies.h"
#include "jit/opt/inline_calls.h"

namespace uptier::jit {

struct Optimized {
  LoopNest loops;
  Frequencies frequencies;
};

// Optimizes `f` and lays out its blocks.
Optimized optimize(Function& f, const InlineRequest& r);

}  // namespace uptier::jit
