// optimize: the passes in order, for one compilation.
#pragma once

#include <cstdint>
#include <span>

#include "jit/ir/function.h"
#include "jit/opt/frequencies.h"
#include "jit/opt/inline_calls.h"
#include "jit/opt/pass_observer.h"

namespace uptier::jit {

struct Optimized {
  LoopNest loops;
  Frequencies frequencies;
};

// Optimizes `f` and lays out its blocks. `observer` may be null. In an instrumented copy all blocks
// that run keep their probes.
Optimized optimize(Function& f, const InlineRequest& r, PassObserver* observer = nullptr,
                   Copy copy = Copy::kPlain);

}  // namespace uptier::jit
