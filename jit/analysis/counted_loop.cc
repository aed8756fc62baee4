#include "jit/analysis/counted_loop.h"

#include "jit/analysis/condition.h"
#include "jit/analysis/interval.h"

namespace uptier::jit {
namespace {

class CountedLoopFinder {
 public:
  CountedLoopFinder(const Function& f, const ControlFlow& c, const LoopNest& n, uint32_t loop)
      : f_(f), control_(c), loops_(n), loop_(loop), header_(n.loops[loop].header) {}

  std::optional<CountedLoop> run() {
    if (!find_latch()) return std::nullopt;
    const Inst& t = f_.terminator(found_.latch);
    Condition c = condition_of(f_, f_.args(t)[0], t.edges_at == found_.back);
    if (c.op == Opcode::kSelect) {
      bool to_zero = c.holds && is_int(f_.type_of(c.a)) && varies(c.a);
      return to_zero ? with_test(Opcode::kNe, Value::none()) : std::nullopt;
    }
    if (!is_int(c.type)) return std::nullopt;
    Opcode test = c.holds ? c.op : opposite(c.op);
    if (is_same(c.b) && varies(c.a)) return with_test(test, c.b);
    if (is_same(c.a) && varies(c.b)) return with_test(mirrored(test), c.a);
    return std::nullopt;
  }

 private:
  // Finds the only block that branches back; its branch otherwise leaves the loop.
  bool find_latch() {
    uint32_t back = 0;
    for (const Predecessor& p : control_.preds[header_.index()]) {
      if (!loops_.contains(loop_, p.from)) continue;
      ++back;
      found_.latch = p.from;
      found_.back = p.edge;
    }
    if (back != 1 || f_.terminator(found_.latch).op != Opcode::kBranch) return false;
    uint32_t out = 0;
    for (const Edge& e : f_.successors(found_.latch)) out += !loops_.contains(loop_, e.to);
    return out == 1;
  }

  bool is_same(Value v) const { return is_invariant(f_, loops_, loop_, v); }

  static Opcode opposite(Opcode op) {
    switch (op) {
      case Opcode::kEq: return Opcode::kNe;
      case Opcode::kLtS: return Opcode::kGeS;
      case Opcode::kLtU: return Opcode::kGeU;
      case Opcode::kLeS: return Opcode::kGtS;
      default: return Opcode::kGtU;
    }
  }

  // Returns whether a value is a growing variable, or its value in the next iteration.
  bool varies(Value v) {
    auto params = f_.params(header_);
    auto next = f_.list(f_.edges[found_.back].args);
    for (uint32_t n = 0; n < params.size(); ++n) {
      if (v != params[n] && v != next[n]) continue;
      if (!grows(params[n], next[n])) continue;
      found_.variable = params[n];
      found_.index = n;
      return true;
    }
    return false;
  }

  bool grows(Value variable, Value next) {
    InstId id = f_.value(next).inst;
    if (!id.valid() || f_.inst(id).op != Opcode::kAdd) return false;
    auto args = f_.args(f_.inst(id));
    if (args[0] != variable && args[1] != variable) return false;
    found_.step = args[args[0] == variable ? 1 : 0];
    found_.constant_step = constant_of(f_, found_.step);
    return is_same(found_.step) && found_.constant_step.value_or(1) != 0;
  }

  std::optional<CountedLoop> with_test(Opcode test, Value limit) {
    if (test == Opcode::kEq) return std::nullopt;
    found_.test = test;
    found_.limit = limit;
    return found_;
  }

  const Function& f_;
  const ControlFlow& control_;
  const LoopNest& loops_;
  uint32_t loop_;
  Block header_;
  CountedLoop found_{};
};

}  // namespace

bool is_invariant(const Function& f, const LoopNest& n, uint32_t loop, Value v) {
  return !n.contains(loop, f.value(v).block) || constant_of(f, v).has_value();
}

std::optional<uint64_t> constant_of(const Function& f, Value v) {
  InstId i = f.value(v).inst;
  bool constant = i.valid() && f.inst(i).op == Opcode::kConst;
  return constant ? std::optional(f.inst(i).imm) : std::nullopt;
}

std::optional<CountedLoop> find_counted_loop(const Function& f, const ControlFlow& c,
                                             const LoopNest& n, uint32_t loop) {
  return CountedLoopFinder(f, c, n, loop).run();
}

}  // namespace uptier::jit
