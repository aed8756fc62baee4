#include <bit>

#include "jit/analysis/dominators.h"
#include "jit/ir/semantics.h"
#include "jit/opt/passes.h"
#include "jit/opt/rewriter.h"

namespace uptier::jit {
namespace {

class Simplifier {
 public:
  explicit Simplifier(Function& f) : f_(f), r_(f) {}

  void run() {
    r_.run(compute_dominators(f_).order, [&](InstId i) { return visit(i); });
  }

 private:
  // Each step returns a value that the instruction equals, or none. It may also change the
  // instruction in place.
  bool visit(InstId id) {
    id_ = id;
    Opcode op = f_.inst(id).op;
    Value same;
    switch (info(op).shape) {
      case Shape::kBinary:
        if (is_int(type())) same = binary();
        break;
      case Shape::kCompare: compare(); break;
      case Shape::kTest: eqz(); break;
      case Shape::kUnary:
        if (op == Opcode::kSext8 || op == Opcode::kSext16)
          same = sext(op == Opcode::kSext8 ? 8 : 16);
        break;
      case Shape::kConvert: same = convert(); break;
      default: break;
    }
    if (!same.valid()) return true;
    r_.replace(f_.inst(id).result, same);
    return false;
  }

  Type type() const { return f_.inst(id_).type; }
  unsigned width() const { return type() == Type::kI32 ? 32 : 64; }
  Value arg(uint32_t n) const { return f_.args(f_.inst(id_))[n]; }
  uint64_t all_ones() const { return clip(type(), ~uint64_t{0}); }
  Value constant(uint64_t bits) { return r_.constant(type(), clip(type(), bits)); }

  Value become_constant(uint64_t bits) {
    r_.become_constant(id_, bits);
    return Value::none();
  }
  Value become(Opcode op, Value a, Value b) {
    r_.become(id_, op, {a, b});
    return Value::none();
  }
  Value become(Opcode op, Value a) {
    r_.become(id_, op, {a});
    return Value::none();
  }

  Value binary() {
    Opcode op = f_.inst(id_).op;
    bool left = r_.constant_of(arg(0)).has_value(), right = r_.constant_of(arg(1)).has_value();
    if ((info(op).effects & kCommutes) && left && !right) {
      auto args = f_.args(f_.inst(id_));
      std::swap(args[0], args[1]);
      right = true;
    }
    if (arg(0) == arg(1)) {
      if (Value v = on_itself(op); v.valid()) return v;
      if (f_.inst(id_).op != op) return Value::none();
    }
    if (right) return with_constant(op, *r_.constant_of(arg(1)));
    return op == Opcode::kSub ? remainder() : Value::none();
  }

  // a - (a and c) -> a and not c
  Value remainder() {
    const Inst* from = r_.def(arg(1), Opcode::kAnd);
    if (!from || f_.args(*from)[0] != arg(0)) return Value::none();
    auto c = r_.constant_of(f_.args(*from)[1]);
    return c ? become(Opcode::kAnd, arg(0), constant(~*c)) : Value::none();
  }

  // a op a
  Value on_itself(Opcode op) {
    switch (op) {
      case Opcode::kAnd:
      case Opcode::kOr: return arg(0);
      case Opcode::kSub:
      case Opcode::kXor: return become_constant(0);
      default: return Value::none();
    }
  }

  // a op c
  Value with_constant(Opcode op, uint64_t c) {
    switch (op) {
      case Opcode::kSub: return become(Opcode::kAdd, arg(0), constant(0 - c));
      case Opcode::kAdd: return c == 0 ? arg(0) : reassociate(op, c);
      case Opcode::kOr:
      case Opcode::kXor:
        if (c == 0) return arg(0);
        return reassociate(op, c);
      case Opcode::kAnd:
        if (c == 0) return become_constant(0);
        if (c == all_ones() || fits(arg(0), c)) return arg(0);
        return reassociate(op, c);
      case Opcode::kShl:
      case Opcode::kShrS:
      case Opcode::kShrU:
      case Opcode::kRotl:
      case Opcode::kRotr: return shift(op, c & (width() - 1));
      case Opcode::kMul: return multiply(c);
      case Opcode::kDivU:
        if (c == 1) return arg(0);
        if (std::has_single_bit(c)) {
          return become(Opcode::kShrU, arg(0), constant(std::countr_zero(c)));
        }
        return Value::none();
      case Opcode::kRemU:
        if (std::has_single_bit(c)) return become(Opcode::kAnd, arg(0), constant(c - 1));
        return Value::none();
      case Opcode::kDivS: return c == 1 ? arg(0) : Value::none();
      default: return Value::none();
    }
  }

  // (a op k) op c -> a op (k op c)
  Value reassociate(Opcode op, uint64_t c) {
    const Inst* inner = r_.def(arg(0), op);
    if (!inner) return Value::none();
    Value a = f_.args(*inner)[0];
    auto k = r_.constant_of(f_.args(*inner)[1]);
    if (!k) return Value::none();
    uint64_t operands[] = {*k, c};
    uint64_t both = evaluate(op, type(), type(), operands).bits;
    if (both == 0 && op != Opcode::kAnd) return a;
    return become(op, a, constant(both));
  }

  Value shift(Opcode op, uint64_t count) {
    if (count == 0) return arg(0);
    const Inst* inner = r_.def(arg(0), Opcode::kShl);
    if (op != Opcode::kShrS || !inner || r_.constant_of(f_.args(*inner)[1]) != count) {
      return Value::none();
    }
    // A sign extension written as two shifts.
    Value a = f_.args(*inner)[0];
    if (count == width() - 8) return become(Opcode::kSext8, a);
    if (count == width() - 16) return become(Opcode::kSext16, a);
    if (count == 32) return become(Opcode::kSext32, a);
    return Value::none();
  }

  Value multiply(uint64_t c) {
    if (c == 0) return become_constant(0);
    if (c == 1) return arg(0);
    if (c == all_ones()) {
      Value zero = constant(0);
      return become(Opcode::kSub, zero, arg(0));
    }
    if (std::has_single_bit(c)) return become(Opcode::kShl, arg(0), constant(std::countr_zero(c)));
    return Value::none();
  }

  // Returns whether the definition of `v` shows that it has no bits outside the mask.
  bool fits(Value v, uint64_t mask) {
    const Inst* i = r_.def(v);
    if (!i) return false;
    Shape s = info(i->op).shape;
    if (s == Shape::kCompare || s == Shape::kTest) return (mask & 1) != 0;
    switch (i->op) {
      case Opcode::kLoad8U: return (mask & 0xFF) == 0xFF;
      case Opcode::kLoad16U: return (mask & 0xFFFF) == 0xFFFF;
      case Opcode::kLoad32U:
      case Opcode::kExtendU: return (mask & 0xFFFFFFFF) == 0xFFFFFFFF;
      case Opcode::kAnd: {
        auto c = r_.constant_of(f_.args(*i)[1]);
        return c && (*c & ~mask) == 0;
      }
      case Opcode::kShrU: {
        auto c = r_.constant_of(f_.args(*i)[1]);
        return c && (clip(i->type, ~uint64_t{0}) >> (*c & (i->type == Type::kI32 ? 31 : 63)) &
                     ~mask) == 0;
      }
      default: return false;
    }
  }

  Value sext(unsigned bits) {
    const Inst* i = r_.def(arg(0));
    if (!i || i->type != type()) return Value::none();
    if (bits == 8 && i->op == Opcode::kLoad8S) return arg(0);
    if (bits == 16 && (i->op == Opcode::kLoad16S || i->op == Opcode::kLoad8S)) return arg(0);
    return Value::none();
  }

  Value convert() {
    const Inst& i = f_.inst(id_);
    const Inst* from = r_.def(arg(0));
    if (!from) return Value::none();
    bool extended = from->op == Opcode::kExtendU || from->op == Opcode::kExtendS;
    if (i.op == Opcode::kWrap && extended) return f_.args(*from)[0];
    if (i.op == Opcode::kExtendS && fits(arg(0), 0x7FFFFFFF))
      r_.become(id_, Opcode::kExtendU, {arg(0)});
    if (i.op == Opcode::kBitcast && from->op == Opcode::kBitcast) {
      Value a = f_.args(*from)[0];
      if (f_.type_of(a) == i.type) return a;
    }
    return Value::none();
  }

  // Puts the constant of a comparison on the right, and turns comparisons with zero into eqz if
  // possible.
  void compare() {
    const Inst& i = f_.inst(id_);
    if (!is_int(i.type)) return;
    if (r_.constant_of(arg(0)) && !r_.constant_of(arg(1))) swap_compare();
    auto c = r_.constant_of(arg(1));
    if (!c) return;
    Opcode op = f_.inst(id_).op;
    bool zero = (op == Opcode::kEq && *c == 0) || (op == Opcode::kLtU && *c == 1) ||
                (op == Opcode::kLeU && *c == 0);
    if (zero) {
      r_.become(id_, Opcode::kEqz, {arg(0)});
    } else if ((op == Opcode::kGtU && *c == 0) || (op == Opcode::kGeU && *c == 1)) {
      r_.become(id_, Opcode::kNe, {arg(0), constant(0)});
    }
  }

  void swap_compare() {
    Opcode op;
    switch (f_.inst(id_).op) {
      case Opcode::kLtS: op = Opcode::kGtS; break;
      case Opcode::kLtU: op = Opcode::kGtU; break;
      case Opcode::kGtS: op = Opcode::kLtS; break;
      case Opcode::kGtU: op = Opcode::kLtU; break;
      case Opcode::kLeS: op = Opcode::kGeS; break;
      case Opcode::kLeU: op = Opcode::kGeU; break;
      case Opcode::kGeS: op = Opcode::kLeS; break;
      case Opcode::kGeU: op = Opcode::kLeU; break;
      case Opcode::kEq:
      case Opcode::kNe:
      case Opcode::kAddOverflows:
      case Opcode::kMulOverflows: op = f_.inst(id_).op; break;
      default: return;
    }
    become(op, arg(1), arg(0));
  }

  // eqz(a cmp b) -> a opposite b, for integers.
  void eqz() {
    const Inst* from = r_.def(arg(0));
    if (!from || type() != Type::kI32) return;
    if (from->op == Opcode::kEqz) return;  // the instruction selector expects eqz(eqz x)
    Opcode op;
    switch (from->op) {
      case Opcode::kEq: op = Opcode::kNe; break;
      case Opcode::kNe: op = Opcode::kEq; break;
      case Opcode::kLtS: op = Opcode::kGeS; break;
      case Opcode::kLtU: op = Opcode::kGeU; break;
      case Opcode::kGtS: op = Opcode::kLeS; break;
      case Opcode::kGtU: op = Opcode::kLeU; break;
      case Opcode::kLeS: op = Opcode::kGtS; break;
      case Opcode::kLeU: op = Opcode::kGtU; break;
      case Opcode::kGeS: op = Opcode::kLtS; break;
      case Opcode::kGeU: op = Opcode::kLtU; break;
      default: return;
    }
    Value a = f_.args(*from)[0], b = f_.args(*from)[1];
    f_.inst(id_).type = from->type;
    become(op, a, b);
  }

  Function& f_;
  Rewriter r_;
  InstId id_;
};

}  // namespace

void simplify_arithmetic(Function& f) { Simplifier(f).run(); }

}  // namespace uptier::jit
