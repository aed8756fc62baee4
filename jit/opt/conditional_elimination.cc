// Conditional elimination. A condition that is already known is not tested again:
//
//   after guard c               c holds
//   after trap_if c             c does not hold
//   on the edges of branch c    it holds on one, and does not on the other
//   at a join                   a condition holds for a parameter if each edge implies it for the
//                               argument that it passes. At the top of a loop, the loop's test is such
//                               a condition: at the entry and at the end of an iteration
//
// A comparison is identified by the two values that it compares, not by the instruction. It also
// decides the opposite comparison, and eqz of both. Any other condition is identified by its value.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "jit/analysis/condition.h"
#include "jit/analysis/control_flow.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr uint32_t kMostBetween = 2;  // the most blocks between a branch and a join
constexpr size_t kMostWays = 4;  // the most edges into a block that are examined for its parameters

struct Known {
  Condition condition;
  Block from;  // known in the blocks that this one dominates, after the place where it was noted
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

  // Returns whether the condition is known to hold (1) or not to hold (0) in the block; -1:
  // unknown.
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

  // Notes the conditions that the edges into the block imply.
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

  // Returns the condition implied by an edge: by the branch at its source, or before blocks that
  // only jump on.
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

  // Notes a condition for parameter `n` if it holds for the argument on each edge. The other
  // operand of the comparison dominates all edges, so it dominates the block.
  void join(Block b, uint32_t n, Value Condition::*side, Condition c) {
    for (const Predecessor& p : control_.preds[b.index()]) {
      c.*side = passed(p, n);
      auto said = said_by(p);
      bool same = said && said->op == c.op && said->type == c.type && said->a == c.a &&
                  said->b == c.b && said->holds == c.holds;
      bool seen = control_.position[p.from.index()] < control_.position[b.index()];
      if (!same && (!seen || look(c, p.from) != 1)) return;
    }
    c.*side = f_.params(b)[n];
    note(c, b);
  }

  // Returns whether the guard or trap never fires. A guard that asks the runtime stays.
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
  // Guards often test loaded values, and store_to_load_forwarding has just merged loads. gvn merges
  // the conditions computed from them.
  if (has(f, Opcode::kGuard)) gvn(f);
  ConditionSettler s(f);
  s.run();
  if (s.changed()) simplify_cfg(f);
}

}  // namespace uptier::jit
