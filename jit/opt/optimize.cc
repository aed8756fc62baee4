#include "jit/opt/optimize.h"

#include "jit/opt/passes.h"

namespace uptier::jit {

Optimized optimize(Function& f, const InlineRequest& r) {
  strip_patchpoints(f);
  prune_params(f);
  BlockCounts counts = inline_calls(f, r);
  if (!f.inlined.empty()) prune_params(f);
  fold_constants(f);
  simplify_arithmetic(f);
  fold_branches(f);
  reduce_divisions(f);
  hoist_invariants(f);
  prune_params(f);
  merge_common(f);
  remove_dead(f);
  sink_past_calls(f);
  ControlFlow control = analyze_control_flow(f);
  Optimized o;
  o.loops = find_loops(f, control);
  o.frequencies = estimate_frequencies(f, control, o.loops, counts);
  layout_blocks(f, o.loops, o.frequencies);
  return o;
}

}  // namespace uptier::jit
