#include "jit/analysis/condition.h"

namespace uptier::jit {
namespace {

const Inst* def(const Function& f, Value v) {
  InstId i = f.value(v).inst;
  return i.valid() ? &f.inst(i) : nullptr;
}

Condition comparison(const Function& f, const Inst& i, Value v, bool holds) {
  if (i.op == Opcode::kEqz) return {Opcode::kSelect, i.type, f.args(i)[0], Value::none(), !holds};
  bool compares = i.op >= Opcode::kEq && i.op <= Opcode::kGeU;
  if (!compares) return {Opcode::kSelect, Type::kI32, v, Value::none(), holds};
  Value a = f.args(i)[0], b = f.args(i)[1];
  switch (i.op) {
    case Opcode::kNe: return {Opcode::kEq, i.type, a, b, !holds};
    case Opcode::kGeS: return {Opcode::kLtS, i.type, a, b, !holds};
    case Opcode::kGeU: return {Opcode::kLtU, i.type, a, b, !holds};
    case Opcode::kGtS: return {Opcode::kLeS, i.type, a, b, !holds};
    case Opcode::kGtU: return {Opcode::kLeU, i.type, a, b, !holds};
    default: return {i.op, i.type, a, b, holds};
  }
}

}  // namespace

Condition condition_of(const Function& f, Value v, bool holds) {
  for (const Inst* i = def(f, v); i != nullptr; i = def(f, v)) {
    bool opposite = i->op == Opcode::kEqz && i->type == Type::kI32;
    if (!opposite) return comparison(f, *i, v, holds);
    v = f.args(*i)[0];
    holds = !holds;
  }
  return {Opcode::kSelect, Type::kI32, v, Value::none(), holds};
}

}  // namespace uptier::jit
