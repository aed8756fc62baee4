#include "jit/x64/address.h"
#include "jit/x64/lower_impl.h"

namespace uptier::jit::x64 {
namespace {

class WidthFinder {
 public:
  explicit WidthFinder(const Function& f) : f_(f), preds_(f) {
    w_.alias.resize(f.values.size());
    for (uint32_t v = 0; v < f.values.size(); ++v) w_.alias[v] = Value(v);
    w_.clean.resize(f.values.size());
  }

  Widths run() {
    for (Block b : f_.layout) {
      for (InstId i : f_.block(b).insts) demand_operands(f_.inst(i));
    }
    while (!work_.empty()) {
      Value v = work_.back();
      work_.pop_back();
      pass_on(v);
    }
    for (Block b : f_.layout) {
      for (InstId i : f_.block(b).insts) add_alias(f_.inst(i));
    }
    return std::move(w_);
  }

 private:
  void demand(Value v) {
    if (f_.type_of(v) != Type::kI32 || w_.clean[v.index()]) return;
    w_.clean[v.index()] = true;
    work_.push_back(v);
  }

  void demand_operands(const Inst& i) {
    Shape s = info(i.op).shape;
    auto args = f_.args(i);
    if (i.op == Opcode::kExtendU || s == Shape::kSwitch) demand(args[0]);
    if (s != Shape::kLoad && s != Shape::kStore) return;
    if (Value index = take_apart(f_, i).index; index.valid()) demand(index);
  }

  // A clean parameter needs clean arguments. A bitcast is a move of the whole register, so it needs
  // a clean operand. Other definitions clean their results themselves.
  void pass_on(Value v) {
    const ValueData& d = f_.value(v);
    if (d.inst.valid()) {
      const Inst& i = f_.inst(d.inst);
      if (i.op == Opcode::kBitcast) demand(f_.args(i)[0]);
      return;
    }
    if (d.block == f_.entry()) return;
    for (const Predecessor& p : preds_[d.block.index()]) {
      demand(f_.list(f_.edges[p.edge].args)[d.index]);
    }
  }

  void add_alias(const Inst& i) {
    if (i.op != Opcode::kWrap && i.op != Opcode::kExtendU) return;
    Value from = f_.args(i)[0];
    bool needs_move = i.op == Opcode::kWrap && w_.clean[i.result.index()] && !is_narrow(from);
    if (!needs_move) w_.alias[i.result.index()] = w_.alias[from.index()];
  }

  // Returns whether the definition shows that an i64 has a zero upper half.
  bool is_narrow(Value v) {
    InstId id = f_.value(v).inst;
    if (!id.valid()) return false;
    const Inst& i = f_.inst(id);
    auto constant = [&]() -> std::optional<uint64_t> {
      InstId c = f_.value(f_.args(i)[1]).inst;
      if (!c.valid() || f_.inst(c).op != Opcode::kConst) return std::nullopt;
      return f_.inst(c).imm;
    };
    switch (i.op) {
      case Opcode::kExtendU:
      case Opcode::kLoad8U:
      case Opcode::kLoad16U:
      case Opcode::kLoad32U: return true;
      case Opcode::kShrU: {
        auto c = constant();
        return c && (*c & 63) >= 32;
      }
      case Opcode::kAnd: {
        auto c = constant();
        return c && *c <= UINT32_MAX;
      }
      default: return false;
    }
  }

  const Function& f_;
  Predecessors preds_;
  std::vector<Value> work_;
  Widths w_;
};

}  // namespace

Widths find_widths(const Function& f) { return WidthFinder(f).run(); }

}  // namespace uptier::jit::x64
