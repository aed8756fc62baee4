#include "jit/analysis/induction.h"

#include "jit/ir/semantics.h"

namespace uptier::jit {
namespace {

constexpr unsigned kDeepest = 6;  // definitions looked through

}  // namespace

const Inst* Induction::def(Value v) const {
  InstId i = f_.value(v).inst;
  return i.valid() ? &f_.inst(i) : nullptr;
}

// Returns the constant c with `v` = `to` + c, following additions only.
std::optional<uint64_t> Induction::added(Value v, Value to, unsigned depth) const {
  if (v == to) return 0;
  const Inst* i = def(v);
  if (i == nullptr || depth == kDeepest || (i->op != Opcode::kAdd && i->op != Opcode::kSub)) {
    return std::nullopt;
  }
  const Inst* c = def(f_.args(*i)[1]);
  if (c == nullptr || c->op != Opcode::kConst) return std::nullopt;
  auto rest = added(f_.args(*i)[0], to, depth + 1);
  if (!rest) return std::nullopt;
  return clip(i->type, i->op == Opcode::kAdd ? *rest + c->imm : *rest - c->imm);
}

std::optional<uint64_t> Induction::step_of_param(Value p) const {
  return added(f_.list(back_.args)[f_.value(p).index], p, 0);
}

std::optional<uint64_t> Induction::step(Value v, unsigned depth) const {
  if (!inside(v)) return 0;
  const Inst* i = def(v);
  if (i == nullptr) return step_of_param(v);
  if (i->op == Opcode::kConst) return 0;
  if (depth == kDeepest) return std::nullopt;
  auto of = [&](unsigned n) { return step(f_.args(*i)[n], depth + 1); };
  auto constant = [&](unsigned n) -> std::optional<uint64_t> {
    const Inst* c = def(f_.args(*i)[n]);
    return c != nullptr && c->op == Opcode::kConst ? std::optional(c->imm) : std::nullopt;
  };
  switch (i->op) {
    case Opcode::kAdd:
    case Opcode::kSub: {
      auto a = of(0), b = of(1);
      if (!a || !b) return std::nullopt;
      return clip(i->type, i->op == Opcode::kAdd ? *a + *b : *a - *b);
    }
    case Opcode::kMul: {
      auto a = of(0);
      auto k = constant(1);
      return a && k ? std::optional(clip(i->type, *a * *k)) : std::nullopt;
    }
    case Opcode::kShl: {
      auto a = of(0);
      auto k = constant(1);
      unsigned mask = is_wide(i->type) ? 63 : 31;
      return a && k ? std::optional(clip(i->type, *a << (*k & mask))) : std::nullopt;
    }
    case Opcode::kBitcast: {
      bool words = !is_float(i->type) && is_wide(i->type) && !is_float(f_.type_of(f_.args(*i)[0]));
      return words ? of(0) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

}  // namespace uptier::jit
