#include "jit/opt/optimize.h"

#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

struct Pass {
  const char* name;
  void (*run)(Function&);
};

constexpr Pass kBefore[] = {
    {"strip_patchpoints", strip_patchpoints},
    {"prune_params", prune_params},
};

constexpr Pass kAfter[] = {
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

void tell(PassObserver* observer, const char* pass, const Function& f) {
  if (observer != nullptr) observer->after(pass, f);
}

void run_all(std::span<const Pass> passes, Function& f, PassObserver* observer) {
  for (const Pass& p : passes) {
    p.run(f);
    tell(observer, p.name, f);
  }
}

}  // namespace

Optimized optimize(Function& f, const InlineRequest& r, PassObserver* observer) {
  run_all(kBefore, f, observer);
  BlockCounts counts = inline_calls(f, r);
  tell(observer, "inline_calls", f);
  run_all(kAfter, f, observer);
  ControlFlow control = analyze_control_flow(f);
  Optimized o;
  o.loops = find_loops(f, control);
  o.frequencies = estimate_frequencies(f, control, o.loops, counts);
  layout_blocks(f, o.loops, o.frequencies);
  tell(observer, "layout_blocks", f);
  return o;
}

}  // namespace uptier::jit
