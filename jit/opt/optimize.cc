#include "jit/opt/optimize.h"

#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

struct Pass {
  const char* name;
  void (*run)(Function&);
};

constexpr Pass kPasses[] = {
    {"strip_patchpoints", strip_patchpoints},
    {"prune_params", prune_params},
    {"fold_constants", fold_constants},
    {"simplify_arithmetic", simplify_arithmetic},
    {"fold_branches", fold_branches},
    {"duplicate_tails", duplicate_tails},
    {"fold_constants", fold_constants},
    {"fold_branches", fold_branches},
    {"reduce_divisions", reduce_divisions},
    {"hoist_invariants", hoist_invariants},
    {"prune_params", prune_params},
    {"merge_common", merge_common},
    {"forward_memory", forward_memory},
    {"remove_dead", remove_dead},
    {"sink_past_calls", sink_past_calls},
};

}  // namespace

Optimized optimize(Function& f, std::span<const uint64_t> counts, PassObserver* observer) {
  for (const Pass& p : kPasses) {
    p.run(f);
    if (observer != nullptr) observer->after(p.name, f);
  }
  ControlFlow control = analyze_control_flow(f);
  Optimized o;
  o.loops = find_loops(f, control);
  o.frequencies = estimate_frequencies(f, control, o.loops, counts);
  layout_blocks(f, o.loops, o.frequencies);
  if (observer != nullptr) observer->after("layout_blocks", f);
  return o;
}

}  // namespace uptier::jit
