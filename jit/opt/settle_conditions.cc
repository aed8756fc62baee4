// A condition that was decided on every way to a place is not asked again there:
//
//   behind guard c                  c holds
//   behind trap_if c                c does not
//   on the ways of branch c         it does, or does not
//
// A condition is a comparison of two values, by what is compared, not by who did it; its opposite,
// and eqz of it, are known with it. Anything else is a condition by its value.
#include <algorithm>
#include <unordered_map>

#include "jit/opt/control_flow.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

// `op` is kEq, kLtS, kLtU, kLeS or kLeU; or kSelect for whether `a` is not 0.
struct Condition {
  Opcode op = Opcode::kSelect;
  Type type = Type::kI32;
  Value a, b;
  bool holds = true;  // or its opposite
};

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
  const Inst* def(Value v) const {
    InstId i = f_.value(v).inst;
    return i.valid() ? &f_.inst(i) : nullptr;
  }

  Condition condition_of(Value v, bool holds) const {
    for (const Inst* i = def(v); i != nullptr; i = def(v)) {
      bool opposite = i->op == Opcode::kEqz && i->type == Type::kI32;
      if (!opposite) return comparison(*i, v, holds);
      v = f_.args(*i)[0];
      holds = !holds;
    }
    return {Opcode::kSelect, Type::kI32, v, Value::none(), holds};
  }

  Condition comparison(const Inst& i, Value v, bool holds) const {
    if (i.op == Opcode::kEqz)
      return {Opcode::kSelect, i.type, f_.args(i)[0], Value::none(), !holds};
    bool compares = i.op >= Opcode::kEq && i.op <= Opcode::kGeU;
    if (!compares) return {Opcode::kSelect, Type::kI32, v, Value::none(), holds};
    Value a = f_.args(i)[0], b = f_.args(i)[1];
    switch (i.op) {
      case Opcode::kNe: return {Opcode::kEq, i.type, a, b, !holds};
      case Opcode::kGeS: return {Opcode::kLtS, i.type, a, b, !holds};
      case Opcode::kGeU: return {Opcode::kLtU, i.type, a, b, !holds};
      case Opcode::kGtS: return {Opcode::kLeS, i.type, a, b, !holds};
      case Opcode::kGtU: return {Opcode::kLeU, i.type, a, b, !holds};
      default: return {i.op, i.type, a, b, holds};
    }
  }

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

  // What the way into the block says.
  void enter(Block b) {
    const auto& preds = control_.preds[b.index()];
    if (preds.size() != 1) return;
    const Inst& t = f_.terminator(preds[0].from);
    if (t.op != Opcode::kBranch) return;
    note(condition_of(f_.args(t)[0], preds[0].edge == t.edges_at), b);
  }

  // Returns whether the guard or trap never happens. One that asks the runtime stays.
  bool drop(Block b, InstId id) {
    const Inst& i = f_.inst(id);
    bool guard = i.op == Opcode::kGuard;
    if (!guard && i.op != Opcode::kTrapIf) return false;
    if (guard && i.imm != 0 && f_.deopts[i.imm - 1].asks()) return false;
    Condition passes = condition_of(f_.args(i)[0], guard);
    int known = look(passes, b);
    if (known < 0) note(passes, b);
    return known == 1;
  }

  void settle_branch(Block b) {
    Inst& t = f_.terminator(b);
    if (t.op != Opcode::kBranch) return;
    int known = look(condition_of(f_.args(t)[0], true), b);
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

void settle_conditions(Function& f) {
  if (!has(f, Opcode::kGuard) && !has(f, Opcode::kTrapIf)) return;
  // Guards on what was loaded: forward_memory has just made loads one value.
  if (has(f, Opcode::kGuard)) merge_common(f);
  ConditionSettler s(f);
  s.run();
  if (s.changed()) fold_branches(f);
}

}  // namespace uptier::jit
