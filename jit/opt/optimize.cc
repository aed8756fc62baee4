#include "jit/opt/optimize.h"

#include <algorithm>

#include "jit/analysis/known_counts.h"
#include "jit/compile/compile.h"
#include "jit/opt/passes.h"
#include "jit/opt/place_target_probes.h"
#include "jit/opt/select_to_branch.h"

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

// Runs passes one after the other until the limit is met; from then on it runs nothing.
class Passes {
 public:
  Passes(Function& f, PassObserver* observer, CompileLimit* limit)
      : f_(f), observer_(observer), limit_(limit) {}

  bool over() const { return over_; }

  template <typename Run>
  void run(const char* pass, Run run) {
    if (over_) return;
    run();
    if (observer_ != nullptr) observer_->after(pass, f_);
    over_ = limit_ != nullptr && limit_->over(pass);
  }

  void run_all(std::span<const Pass> passes) {
    for (const Pass& p : passes) run(p.name, [&] { p.run(f_); });
  }

 private:
  Function& f_;
  PassObserver* observer_;
  CompileLimit* limit_;
  bool over_ = false;
};

}  // namespace

Optimized optimize(Function& f, const InlineRequest& r, PassObserver* observer, Copy copy,
                   const ProbePlan* observed, CompileLimit* limit) {
  Passes passes(f, observer, limit);
  bool plain = copy == Copy::kPlain, counting = !plain, groups = false;
  BlockCounts counts;
  settle_counts(f);
  passes.run("strip_patchpoints", [&] { strip_unobserved(f, observed); });
  passes.run("prune_params", [&] { prune_params(f); });
  passes.run("inline_calls", [&] {
    if (observed != nullptr) place_target_probes(f, *observed);
    counts = inline_calls(f, r);
  });
  passes.run_all(kConstants);
  passes.run("unroll_loops", [&] { unroll_loops(f, counts); });
  passes.run_all(kFlow);
  passes.run("hoist_loads", [&] { hoist_loads(f, counting); });
  passes.run("store_in_bulk", [&] { store_in_bulk(f, counts, counting); });
  passes.run("peel_loops", [&] { peel_loops(f, counts); });
  passes.run("convert_branches", [&] {
    if (plain) convert_branches(f, counts);
  });
  passes.run("split_selects", [&] {
    if (plain) split_selects(f);
  });
  passes.run("split_guards", [&] { split_guards(f, counts); });
  passes.run("lift_cases", [&] { lift_cases(f, counts); });
  passes.run_all(kValues);
  passes.run("forward_memory", [&] { forward_memory(f, counting); });
  passes.run_all(kConditions);
  passes.run("unroll_long_loops", [&] { groups = unroll_long_loops(f, counts); });
  if (groups) passes.run_all(kGroups);
  passes.run_all(kLate);
  passes.run("copy_returns", [&] { copy_returns(f, counts); });
  Optimized o;
  passes.run("layout_blocks", [&] {
    ControlFlow control = analyze_control_flow(f);
    o.loops = find_loops(f, control);
    o.frequencies = estimate_frequencies(f, control, o.loops, counts);
    layout_blocks(f, o.loops, o.frequencies);
  });
  o.given_up = passes.over();
  o.counts = std::move(counts);
  return o;
}

}  // namespace uptier::jit
