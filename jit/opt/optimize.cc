#include "jit/opt/optimize.h"

#include <algorithm>

#include "jit/ir/known_counts.h"
#include "jit/opt/passes.h"
#include "jit/opt/place_target_probes.h"
#include "jit/opt/split_selects.h"

namespace uptier::jit {
namespace {

struct Pass {
  const char* name;
  void (*run)(Function&);
};

bool is_check(Opcode op) {
  switch (op) {
    case Opcode::kGuard:
    case Opcode::kTrapIf:
    case Opcode::kAddTrap:
    case Opcode::kSubTrap:
    case Opcode::kMulTrap:
    case Opcode::kAddOverflows:
    case Opcode::kSubOverflows:
    case Opcode::kMulOverflows: return true;
    default: return false;
  }
}

// Whether the instruction makes a mask of a sign: the beginning of a signed division by a power of
// two, which is one operation where the sign is known.
bool spreads_sign(const Function& f, const Inst& i) {
  if (i.op != Opcode::kShrS) return false;
  InstId by = f.value(f.args(i)[1]).inst;
  uint64_t most = i.type == Type::kI32 ? 31 : 63;
  return by.valid() && f.inst(by).op == Opcode::kConst && (f.inst(by).imm & most) == most;
}

// Intervals take a fifth of an optimizing compilation, and pay where there are checks or signs to
// decide: in code that a compiler has made, such as WebAssembly's, most of what they could decide
// is decided.
void settle_checked_ranges(Function& f) {
  auto wants = [&](InstId i) { return is_check(f.inst(i).op) || spreads_sign(f, f.inst(i)); };
  auto any = [&](Block b) { return std::ranges::any_of(f.block(b).insts, wants); };
  if (!std::ranges::any_of(f.layout, any)) return;
  if (settle_ranges(f)) simplify_arithmetic(f);
}

// The order of what is done is that of these tables, with what needs counts between them.
constexpr Pass kConstants[] = {
    {"prune_params", prune_params},
    {"propagate_constants", propagate_constants},
    {"simplify_arithmetic", simplify_arithmetic},
    {"fold_branches", fold_branches},
    {"expand_bulk", expand_bulk},
};

constexpr Pass kFlow[] = {
    {"duplicate_tails", duplicate_tails},
    {"propagate_constants", propagate_constants},
    {"fold_branches", fold_branches},
};

constexpr Pass kValues[] = {
    {"reduce_divisions", reduce_divisions},
    {"hoist_invariants", hoist_invariants},
    {"prune_params", prune_params},
    {"merge_common", merge_common},
};

constexpr Pass kConditions[] = {
    {"settle_ranges", settle_checked_ranges},
    {"settle_conditions", settle_conditions},
};

// Of what has become groups of rounds.
constexpr Pass kGroups[] = {
    {"propagate_constants", propagate_constants},
    {"simplify_arithmetic", simplify_arithmetic},
    {"fold_branches", fold_branches},
    {"merge_common", merge_common},
};

constexpr Pass kLate[] = {
    {"hoist_costly", hoist_costly},     {"reduce_strength", reduce_strength},
    {"fold_offsets", fold_offsets},     {"retype_accesses", retype_accesses},
    {"remove_dead", remove_dead},       {"sink_past_calls", sink_past_calls},
    {"keep_constants", keep_constants},
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

Optimized optimize(Function& f, const InlineRequest& r, PassObserver* observer, Copy copy,
                   const ProbePlan* observed) {
  settle_counts(f);
  strip_unobserved(f, observed);
  tell(observer, "strip_patchpoints", f);
  prune_params(f);
  tell(observer, "prune_params", f);
  if (observed != nullptr) place_target_probes(f, *observed);
  BlockCounts counts = inline_calls(f, r);
  tell(observer, "inline_calls", f);
  run_all(kConstants, f, observer);
  unroll_loops(f, counts);
  tell(observer, "unroll_loops", f);
  run_all(kFlow, f, observer);
  hoist_loads(f, copy != Copy::kPlain);
  tell(observer, "hoist_loads", f);
  store_in_bulk(f, counts, copy != Copy::kPlain);
  tell(observer, "store_in_bulk", f);
  peel_loops(f, counts);
  tell(observer, "peel_loops", f);
  if (copy == Copy::kPlain) convert_branches(f, counts);
  tell(observer, "convert_branches", f);
  if (copy == Copy::kPlain) split_selects(f);
  tell(observer, "split_selects", f);
  split_guards(f, counts);
  tell(observer, "split_guards", f);
  lift_cases(f, counts);
  tell(observer, "lift_cases", f);
  run_all(kValues, f, observer);
  forward_memory(f, copy != Copy::kPlain);
  tell(observer, "forward_memory", f);
  run_all(kConditions, f, observer);
  bool groups = unroll_long_loops(f, counts);
  tell(observer, "unroll_long_loops", f);
  if (groups) run_all(kGroups, f, observer);
  run_all(kLate, f, observer);
  copy_returns(f, counts);
  tell(observer, "copy_returns", f);
  ControlFlow control = analyze_control_flow(f);
  Optimized o;
  o.loops = find_loops(f, control);
  o.frequencies = estimate_frequencies(f, control, o.loops, counts);
  layout_blocks(f, o.loops, o.frequencies);
  tell(observer, "layout_blocks", f);
  o.counts = std::move(counts);
  return o;
}

}  // namespace uptier::jit
