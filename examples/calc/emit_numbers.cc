// Arithmetic and comparison.
#include <cmath>

#include "emit.h"

namespace calc {

// Returns yes() or no(), Vals, whose code runs as the condition says.
Value Emitter::either(Value condition, const std::function<Value()>& yes,
                      const std::function<Value()>& no) {
  Block if_yes = ir_.block(), if_no = ir_.block(), done = ir_.block();
  Variable out = variable(-1, kI64);
  ir_.branch(condition, if_yes, if_no);
  ir_.begin(if_yes);
  ir_.def(out, yes());
  ir_.jump(done);
  ir_.begin(if_no);
  ir_.def(out, no());
  ir_.jump(done);
  ir_.begin(done);
  state_at_ = kNoState;
  return ir_.use(out);
}

// Makes numbers of operands that have been nothing else so far and may be so again. Returns whether
// they are numbers now.
bool Emitter::make_numbers(Operand& a, Operand& b) {
  if (a.type.number() && b.type.number()) return true;
  for (const Operand* o : {&a, &b}) {
    if (!fast_here() || (!o->type.number() && o->type.is != Type::kAny)) return false;
  }
  for (Operand* o : {&a, &b}) {
    if (o->type.number()) continue;
    // The register may have become one meanwhile: x * x.
    if (type(o->reg).is == Type::kAny) {
      state_here();
      check_number(o->reg);
    }
    *o = operand(o->reg);
  }
  return true;
}

void Emitter::arithmetic(Op op, Operand a, Operand b) {
  if (!make_numbers(a, b)) return any_arithmetic(op, a, b);
  bool ints = a.type.is == Type::kInt && b.type.is == Type::kInt && op != Op::kDiv;
  // Where ints did not do, doubles do; they hold every int.
  if (ints && plan_.speculate && !has_seen(kOverflow)) return int_arithmetic(op, a, b);
  double_arithmetic(op, a, b);
}

void Emitter::int_arithmetic(Op op, const Operand& a, const Operand& b) {
  struct Row {
    Opcode compute, overflows;
  };
  Row row = op == Op::kAdd   ? Row{Opcode::kAdd, Opcode::kAddOverflows}
            : op == Op::kSub ? Row{Opcode::kSub, Opcode::kSubOverflows}
                             : Row{Opcode::kMul, Opcode::kMulOverflows};
  const Instr& i = *instr();
  if (op == Op::kMod || op == Op::kFloorDiv) {
    // For such operands, what the machine does rounds down and takes the right sign.
    guard(ir_.bin(Opcode::kGeS, a.value, ir_.i32(0)), GuardReason::kOverflow);
    guard(ir_.bin(Opcode::kGtS, b.value, ir_.i32(0)), GuardReason::kOverflow);
    Opcode divide = op == Op::kMod ? Opcode::kRemU : Opcode::kDivU;
    return set(i.a, {Type::kInt}, ir_.bin(divide, a.value, b.value));
  }
  Value fits = ir_.un(Opcode::kEqz, ir_.bin(row.overflows, a.value, b.value));
  guard(fits, GuardReason::kOverflow);
  Value v = ir_.bin(row.compute, a.value, b.value);
  bool by_positive = i.op == Op::kMulK && as_int(vm_.code.constants[static_cast<size_t>(i.d)]) > 0;
  if (op == Op::kMul && !by_positive) {
    // A product of 0 is minus zero when one of the two is negative.
    Value negative = ir_.bin(Opcode::kLtS, ir_.bin(Opcode::kOr, a.value, b.value), ir_.i32(0));
    Value zero = ir_.bin(Opcode::kAnd, ir_.un(Opcode::kEqz, v), negative);
    guard(ir_.un(Opcode::kEqz, zero), GuardReason::kOverflow);
  }
  set(i.a, {Type::kInt}, v);
}

void Emitter::double_arithmetic(Op op, const Operand& a, const Operand& b) {
  static const auto kModulo = host_function("fmod", static_cast<double (*)(double, double)>(fmod));
  Value x = double_of(a), y = double_of(b), v;
  switch (op) {
    case Op::kAdd: v = ir_.bin(Opcode::kFAdd, x, y); break;
    case Op::kSub: v = ir_.bin(Opcode::kFSub, x, y); break;
    case Op::kMul: v = ir_.bin(Opcode::kFMul, x, y); break;
    case Op::kDiv: v = ir_.bin(Opcode::kFDiv, x, y); break;
    case Op::kFloorDiv: v = ir_.un(Opcode::kFFloor, ir_.bin(Opcode::kFDiv, x, y)); break;
    default: v = ir_.call(kModulo, {x, y}, 0); break;
  }
  set(instr()->a, {Type::kDouble}, v);
}

// Whatever the operands are: sums of ints on the spot, all else by the helper.
void Emitter::any_arithmetic(Op op, const Operand& a, const Operand& b) {
  Value x = box(a), y = box(b);
  auto slow = [&] { return ir_.call(HELPER(arithmetic), {vm(), where(), x, y}); };
  bool sums = op == Op::kAdd || op == Op::kSub;
  for (const Operand* o : {&a, &b}) sums &= o->type.is == Type::kAny || o->type.is == Type::kInt;
  if (!sums) return set(instr()->a, {Type::kAny}, slow());
  Value ints = ir_.bin(Opcode::kGeU, ir_.bin(Opcode::kAnd, x, y), ir_.i64(kIntTag));
  auto fast = [&] {
    bool adds = op == Op::kAdd;
    Value m = ir_.to(kI32, Opcode::kWrap, x), n = ir_.to(kI32, Opcode::kWrap, y);
    Value over = ir_.bin(adds ? Opcode::kAddOverflows : Opcode::kSubOverflows, m, n);
    // The sum of two ints that is none is exact as a double.
    Value wide = ir_.bin(adds ? Opcode::kAdd : Opcode::kSub, ir_.to(kI64, Opcode::kExtendS, m),
                         ir_.to(kI64, Opcode::kExtendS, n));
    Value whole = box({{Type::kInt}, ir_.to(kI32, Opcode::kWrap, wide)});
    return ir_.select(over, box({{Type::kDouble}, ir_.to(kF64, Opcode::kConvertS, wide)}), whole);
  };
  set(instr()->a, {Type::kAny}, either(ints, fast, slow));
}

void Emitter::negate() {
  const Instr& i = *instr();
  Operand o = operand(i.b), same = o;
  if (!make_numbers(o, same)) {
    return set(i.a, {Type::kAny}, ir_.call(HELPER(negate), {vm(), where(), box(o)}));
  }
  if (o.type.is == Type::kInt && plan_.speculate && !has_seen(kOverflow)) {
    guard(ir_.bin(Opcode::kNe, o.value, ir_.i32(0)), GuardReason::kOverflow);
    guard(ir_.bin(Opcode::kNe, o.value, ir_.i32(INT32_MIN)), GuardReason::kOverflow);
    return set(i.a, {Type::kInt}, ir_.bin(Opcode::kSub, ir_.i32(0), o.value));
  }
  set(i.a, {Type::kDouble}, ir_.un(Opcode::kFNeg, double_of(o)));
}

// `op` is kLess or one of those after it.
Value Emitter::compare(Op op, Operand a, Operand b) {
  static constexpr Opcode kInts[] = {Opcode::kLtS, Opcode::kLeS, Opcode::kGtS, Opcode::kGeS,
                                     Opcode::kEq};
  static constexpr Opcode kDoubles[] = {Opcode::kFLt, Opcode::kFLe, Opcode::kFGt, Opcode::kFGe,
                                        Opcode::kFEq};
  int which = op - Op::kLess;
  bool may_be_anything = op == Op::kEqual && !(a.type.number() && b.type.number());
  if (may_be_anything) return equals(a, b);
  if (!make_numbers(a, b)) return ir_.call(HELPER(compare), {vm(), where(), box(a), box(b)});
  bool ints = a.type.is == Type::kInt && b.type.is == Type::kInt;
  return ints ? ir_.bin(kInts[which], a.value, b.value)
              : ir_.bin(kDoubles[which], double_of(a), double_of(b));
}

// All but numbers and strings are equal when they are the same.
Value Emitter::equals(const Operand& a, const Operand& b) {
  Value x = box(a), y = box(b);
  for (const Operand* o : {&a, &b}) {
    bool by_identity = o->type.is != Type::kAny && o->type.is != Type::kString && !o->type.number();
    if (by_identity) return ir_.bin(Opcode::kEq, x, y);
  }
  return ir_.call(HELPER(equal), {x, y}, 0);
}

void Emitter::for_prepare() {
  int from = instr()->a, to = from + 1;
  if (type(from).is == Type::kInt && type(to).is == Type::kInt) return;
  Value bounds = ir_.call(HELPER(for_bounds), {vm(), where(), boxed(from), boxed(to)});
  set(from, {Type::kInt}, ir_.to(kI32, Opcode::kWrap, bounds));
  set(to, {Type::kInt}, ir_.to(kI32, Opcode::kWrap, ir_.bin(Opcode::kShrU, bounds, ir_.i64(32))));
}

}  // namespace calc
