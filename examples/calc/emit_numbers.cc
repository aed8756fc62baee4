// Arithmetic and comparison.
#include <cmath>

#include "emit.h"

namespace calc {

// Makes numbers of operands that have been nothing else so far and may be so again. Returns whether
// they are numbers now.
bool Emitter::make_numbers(Operand& a, Operand& b) {
  for (const Operand* o : {&a, &b}) {
    if (!o->type.number() && !(fast_here() && o->type.may_be(kNumber))) return false;
  }
  for (Operand* o : {&a, &b}) {
    if (o->type.number()) continue;
    // The register may have become one meanwhile: x * x.
    if (!type(o->reg).number()) need(o->reg, {kNumber});
    *o = operand(o->reg);
  }
  return true;
}

void Emitter::arithmetic(Op op, Operand a, Operand b) {
  if (!make_numbers(a, b)) {
    return set(instr().a, {kAnyKind}, slow(HELPER(arithmetic), box(a), box(b)));
  }
  // Where ints did not do, doubles do; they hold every int.
  bool ints = a.type.is(kInt) && b.type.is(kInt) && op != Op::kDiv && guess_ints();
  if (ints) return int_arithmetic(op, a, b);
  set(instr().a, {kDouble}, double_arithmetic(op, double_of(a), double_of(b)));
}

void Emitter::int_arithmetic(Op op, const Operand& a, const Operand& b) {
  if (op == Op::kMod || op == Op::kFloorDiv) {
    // For such operands, what the machine does rounds down and takes the right sign.
    guard(bin(Opcode::kGeS, a.value, b_.i32(0)), GuardReason::kOverflow);
    guard(bin(Opcode::kGtS, b.value, b_.i32(0)), GuardReason::kOverflow);
    Opcode divide = op == Op::kMod ? Opcode::kRemU : Opcode::kDivU;
    return set(instr().a, {kInt}, bin(divide, a.value, b.value));
  }
  struct Row {
    Opcode compute, overflows;
  };
  Row row = op == Op::kAdd   ? Row{Opcode::kAdd, Opcode::kAddOverflows}
            : op == Op::kSub ? Row{Opcode::kSub, Opcode::kSubOverflows}
                             : Row{Opcode::kMul, Opcode::kMulOverflows};
  Value fits = un(Opcode::kEqz, bin(row.overflows, a.value, b.value));
  guard(fits, GuardReason::kOverflow);
  Value v = bin(row.compute, a.value, b.value);
  bool by_positive = b.reg < 0 && as_int(vm_.code.constants[static_cast<size_t>(instr().d)]) > 0;
  if (op == Op::kMul && !by_positive) {
    // A product of 0 is minus zero when one of the two is negative.
    Value negative = bin(Opcode::kLtS, bin(Opcode::kOr, a.value, b.value), b_.i32(0));
    Value zero = bin(Opcode::kAnd, un(Opcode::kEqz, v), negative);
    guard(un(Opcode::kEqz, zero), GuardReason::kOverflow);
  }
  set(instr().a, {kInt}, v);
}

Value Emitter::double_arithmetic(Op op, Value a, Value b) {
  static const auto kModulo =
      uptier::host_function("fmod", static_cast<double (*)(double, double)>(std::fmod));
  switch (op) {
    case Op::kAdd: return bin(Opcode::kFAdd, a, b);
    case Op::kSub: return bin(Opcode::kFSub, a, b);
    case Op::kMul: return bin(Opcode::kFMul, a, b);
    case Op::kDiv: return bin(Opcode::kFDiv, a, b);
    case Op::kFloorDiv: return un(Opcode::kFFloor, bin(Opcode::kFDiv, a, b));
    default: return b_.call_host(kModulo, {a, b});
  }
}

void Emitter::negate() {
  Operand o = operand(instr().b), same = o;
  int a = instr().a;
  if (!make_numbers(o, same)) return set(a, {kAnyKind}, slow(HELPER(negate), box(o)));
  if (!o.type.is(kInt) || !guess_ints()) return set(a, {kDouble}, un(Opcode::kFNeg, double_of(o)));
  guard(bin(Opcode::kNe, o.value, b_.i32(0)), GuardReason::kOverflow);
  guard(bin(Opcode::kNe, o.value, b_.i32(INT32_MIN)), GuardReason::kOverflow);
  set(a, {kInt}, bin(Opcode::kSub, b_.i32(0), o.value));
}

// `op` is kJumpLess or one of those like it.
Value Emitter::compare(Op op, Operand a, Operand b) {
  struct Row {
    Opcode ints, doubles;
  };
#define CALC_ROW(name, sign, ints, doubles) {Opcode::ints, Opcode::doubles},
  static constexpr Row kRows[] = {CALC_COMPARISONS(CALC_ROW)};
  Row row = kRows[(op - Op::kJumpLess) / 4];
  bool numbers = a.type.number() && b.type.number();
  if (op == Op::kJumpEqual && !numbers) {
    // All but numbers and strings are equal when they are the same.
    bool same = !a.type.may_be(kNumber | kString) || !b.type.may_be(kNumber | kString);
    if (same) return bin(Opcode::kEq, box(a), box(b));
  } else if (make_numbers(a, b)) {
    bool ints = a.type.is(kInt) && b.type.is(kInt);
    return ints ? bin(row.ints, a.value, b.value) : bin(row.doubles, double_of(a), double_of(b));
  }
  return slow(HELPER(compare), box(a), box(b));
}

void Emitter::for_prepare() {
  int from = instr().a, limit = from + 1;
  if (type(from).is(kInt) && type(limit).is(kInt)) return;
  Value bounds = slow(HELPER(for_bounds), boxed(from), boxed(limit));
  set(from, {kInt}, to(kI32, Opcode::kWrap, bounds));
  set(limit, {kInt}, to(kI32, Opcode::kWrap, bin(Opcode::kShrU, bounds, word(32))));
}

}  // namespace calc
