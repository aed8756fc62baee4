#include "jit/opt/optimize.h"

#include <algorithm>

#include "jit/analysis/known_counts.h"
#include "jit/opt/passes.h"
#include "jit/opt/place_tallies.h"
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

// Returns whether the instruction spreads a sign over all bits. That begins a signed division by a
// power of two, which takes only one operation if the sign is known.
bool spreads_sign(const Function& f, const Inst& i) {
  if (i.op != Opcode::kShrS) return false;
  InstId by = f.value(f.args(i)[1]).inst;
  uint64_t most = i.type == Type::kI32 ? 31 : 63;
  return by.valid() && f.inst(by).op == Opcode::kConst && (f.inst(by).imm & most) == most;
}

// Computing intervals takes a fifth of an optimizing compilation. It pays if they can decide checks
// or signs. In code that a compiler has produced, such as WebAssembly's, most of these are decided
// already.
void settle_checked_ranges(Function& f) {
  auto wants = [&](InstId i) { return is_check(f.inst(i).op) || spreads_sign(f, f.inst(i)); };
  auto any = [&](Block b) { return std::ranges::any_of(f.block(b).insts, wants); };
  if (!std::ranges::any_of(f.layout, any)) return;
  if (value_range_propagation(f)) simplify_arithmetic(f);
}

// The tables give the order of the passes; passes that need counts run between them.
constexpr Pass kConstants[] = {
    {"remove_redundant_phis", remove_redundant_phis},
    {"sccp", sccp},
    {"simplify_arithmetic", simplify_arithmetic},
    {"simplify_cfg", simplify_cfg},
    {"expand_memcpy", expand_memcpy},
};

constexpr Pass kFlow[] = {
    {"jump_threading", jump_threading},
    {"sccp", sccp},
    {"simplify_cfg", simplify_cfg},
};

constexpr Pass kValues[] = {
    {"division_by_constants", division_by_constants},
    {"hoist_invariant_loads", hoist_invariant_loads},
    {"remove_redundant_phis", remove_redundant_phis},
    {"gvn", gvn},
};

constexpr Pass kConditions[] = {
    {"value_range_propagation", settle_checked_ranges},
    {"conditional_elimination", conditional_elimination},
};

// Runs after unrolling into groups of iterations.
constexpr Pass kGroups[] = {
    {"sccp", sccp},
    {"simplify_arithmetic", simplify_arithmetic},
    {"simplify_cfg", simplify_cfg},
    {"gvn", gvn},
};

constexpr Pass kLate[] = {
    {"licm", licm},
    {"strength_reduction", strength_reduction},
    {"fold_offsets", fold_offsets},
    {"retype_accesses", retype_accesses},
    {"dce", dce},
    {"code_sinking", code_sinking},
    {"constant_hoisting", constant_hoisting},
};

// Runs passes one after another until the limit is reached; then it runs no more.
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
                   const ProbePlan* observed, CompileLimit* limit, TallyRequest tallies) {
  Passes passes(f, observer, limit);
  bool plain = copy == Copy::kPlain, counting = !plain, groups = false;
  BlockCounts counts;
  settle_counts(f);
  passes.run("strip_patchpoints", [&] { strip_unobserved(f, observed); });
  passes.run("remove_redundant_phis", [&] { remove_redundant_phis(f); });
  passes.run("inline_calls", [&] {
    if (observed != nullptr) place_target_probes(f, *observed);
    counts = inline_calls(f, r);
  });
  passes.run_all(kConstants);
  passes.run("full_unroll", [&] { full_unroll(f, counts); });
  passes.run_all(kFlow);
  passes.run("licm_loads", [&] { licm_loads(f, counting); });
  passes.run("loop_idiom", [&] { loop_idiom(f, counts, counting); });
  passes.run("peel_loops", [&] { peel_loops(f, counts); });
  passes.run("if_conversion", [&] {
    if (plain) if_conversion(f, counts);
  });
  passes.run("select_to_branch", [&] {
    if (plain) select_to_branch(f);
  });
  passes.run("split_guards", [&] { split_guards(f, counts); });
  passes.run("switch_lowering", [&] { switch_lowering(f, counts); });
  passes.run_all(kValues);
  passes.run("store_to_load_forwarding", [&] { store_to_load_forwarding(f, counting); });
  passes.run("merge_fuel", [&] { merge_fuel(f); });
  passes.run_all(kConditions);
  passes.run("runtime_unroll", [&] { groups = runtime_unroll(f, counts); });
  if (groups) passes.run_all(kGroups);
  passes.run_all(kLate);
  passes.run("tail_duplication", [&] { tail_duplication(f, counts); });
  Optimized o;
  passes.run("layout_blocks", [&] {
    auto analyze = [&] {
      ControlFlow control = analyze_control_flow(f);
      o.loops = find_loops(f, control);
      o.frequencies = estimate_frequencies(f, control, o.loops, counts);
    };
    analyze();
    if (tallies.source != nullptr) {
      size_t blocks = f.blocks.size();
      o.tallies = place_tallies(f, o.loops, o.frequencies, tallies);
      if (f.blocks.size() != blocks) analyze();
    }
    layout_blocks(f, o.loops, o.frequencies);
  });
  o.given_up = passes.over();
  o.counts = std::move(counts);
  return o;
}

}  // namespace uptier::jit
