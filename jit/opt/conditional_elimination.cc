// Conditional elimination. A condition is not tested again where it is already known:
//
//   after guard c               c holds
//   after trap_if c             c does not hold
//   on the two ways of branch c it holds, or does not
//   where ways join             what each way knows of the value that it passes to a parameter. At the
//                               top of a loop: what the loop's test says at the entrance and at the end
//                               of a round
//
// A comparison is known by the two values that it compares, not by the instruction that did it. With it
// its opposite is known, and eqz of both. Any other condition is known by its value.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "jit/analysis/condition.h"
#include "jit/analysis/control_flow.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr uint32_t kMostBetween = 2;  // blocks between a branch and where ways join
constexpr size_t kMostWays = 4;       // into a block, of which all say something of a parameter

struct Known {
  Condition condition;
  Block from;  // known in what this dominates, from where it was noted on
};

class ConditionSettler {
 public:
  explicit ConditionSettler(Function& f) : f_(f), control_(analyze_control_flow(f)) {}

  void run() {
    for (Block b : control_.order()) {
      enter(b);
      std::erase_if(f_.block(b).insts, [&](InstId i) { return drop(b, i); });
      settle_branch(b);
    }
  }

 private:
  static uint64_t key(const Condition& c) {
    uint64_t b = c.b.valid() ? c.b.index() : 0;
    return (uint64_t{c.a.index()} << 32 | b) * 0x9E3779B97F4A7C15ull + static_cast<uint64_t>(c.op);
  }

  // Whether the condition is known to hold (1) or not to (0) in the block; -1: it is not known.
  int look(const Condition& c, Block b) const {
    auto [at, end] = known_.equal_range(key(c));
    for (; at != end; ++at) {
      const Known& k = at->second;
      bool same = k.condition.op == c.op && k.condition.type == c.type && k.condition.a == c.a &&
                  k.condition.b == c.b;
      if (same && control_.dominates(k.from, b)) return k.condition.holds == c.holds ? 1 : 0;
    }
    return -1;
  }

  void note(const Condition& c, Block from) {
    if (look(c, from) < 0) known_.emplace(key(c), Known{c, from});
  }

  // What the ways into the block say.
  void enter(Block b) {
    const auto& preds = control_.preds[b.index()];
    if (preds.size() > kMostWays) return;
    for (const Predecessor& p : preds) {
      auto said = said_by(p);
      if (!said) continue;
      if (preds.size() == 1) return note(*said, b);
      for (uint32_t n = 0; n < f_.params(b).size(); ++n) {
        if (passed(p, n) == said->a) join(b, n, &Condition::a, *said);
        if (passed(p, n) == said->b) join(b, n, &Condition::b, *said);
      }
    }
  }

  // What the branch says that led to a way, at its end or in front of blocks that only lead on.
  std::optional<Condition> said_by(Predecessor p) const {
    for (uint32_t n = 0; n < kMostBetween && f_.terminator(p.from).op == Opcode::kJump; ++n) {
      const auto& preds = control_.preds[p.from.index()];
      if (preds.size() != 1) break;
      p = preds[0];
    }
    const Inst& t = f_.terminator(p.from);
    if (t.op != Opcode::kBranch) return std::nullopt;
    return condition_of(f_, f_.args(t)[0], p.edge == t.edges_at);
  }

  Value passed(const Predecessor& p, uint32_t n) const { return f_.list(f_.edges[p.edge].args)[n]; }

  // Notes a condition of parameter `n` that holds for what each way passes to it. What it is
  // compared with is above all ways, so it is above the block.
  void join(Block b, uint32_t n, Value Condition::*side, Condition c) {
    for (const Predecessor& p : control_.preds[b.index()]) {
      c.*side = passed(p, n);
      auto said = said_by(p);
      bool same = said && said->op == c.op && said->type == c.type && said->a == c.a &&
                  said->b == c.b && said->holds == c.holds;
      bool seen = control_.position[p.from.index()] < control_.position[b.index()];
      if (!same && !(seen && look(c, p.from) == 1)) return;
    }
    c.*side = f_.params(b)[n];
    note(c, b);
  }

  // Returns whether the guard or trap never happens. One that asks the runtime stays.
  bool drop(Block b, InstId id) {
    const Inst& i = f_.inst(id);
    bool guard = i.op == Opcode::kGuard;
    if (!guard && i.op != Opcode::kTrapIf) return false;
    if (guard && i.imm != 0 && f_.deopts[i.imm - 1].asks()) return false;
    Condition passes = condition_of(f_, f_.args(i)[0], guard);
    int known = look(passes, b);
    if (known < 0) note(passes, b);
    return known == 1;
  }

  void settle_branch(Block b) {
    Inst& t = f_.terminator(b);
    if (t.op != Opcode::kBranch) return;
    int known = look(condition_of(f_, f_.args(t)[0], true), b);
    if (known < 0) return;
    t.op = Opcode::kJump;
    t.args.size = 0;
    t.edges_at += known == 1 ? 0 : 1;
    t.edge_count = 1;
    changed_ = true;
  }

 public:
  bool changed() const { return changed_; }

 private:
  Function& f_;
  ControlFlow control_;
  std::unordered_multimap<uint64_t, Known> known_;
  bool changed_ = false;
};

bool has(const Function& f, Opcode op) {
  return std::any_of(f.layout.begin(), f.layout.end(), [&](Block b) {
    const auto& insts = f.block(b).insts;
    return std::any_of(insts.begin(), insts.end(), [&](InstId i) { return f.inst(i).op == op; });
  });
}

}  // namespace

void conditional_elimination(Function& f) {
  if (!has(f, Opcode::kGuard) && !has(f, Opcode::kTrapIf)) return;
  // Guards on what was loaded: store_to_load_forwarding has just made loads one value.
  if (has(f, Opcode::kGuard)) gvn(f);
  ConditionSettler s(f);
  s.run();
  if (s.changed()) simplify_cfg(f);
}

}  // namespace uptier::jit
