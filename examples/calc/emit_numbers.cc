// Arithmetic and comparison.
#include "emit.h"
#include "helpers.h"

namespace calc {
namespace {

constexpr auto kI32 = uptier::Type::kI32;
constexpr auto kI64 = uptier::Type::kI64;
constexpr auto kF64 = uptier::Type::kF64;

}  // namespace

// Returns yes() or no(), whose code runs as the condition says.
Value Emitter::either(Value condition, uptier::Type form, const std::function<Value()>& yes,
                      const std::function<Value()>& no) {
  Block if_yes = ir_.block(), if_no = ir_.block(), done = ir_.block();
  Variable out = variable(-1, form);
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

// Whether the instruction has met nothing but numbers and may do so again.
bool Emitter::numbers_so_far(const Operand& a, const Operand& b) const {
  bool possible =
      (a.type.number() || a.type.is == Type::kAny) && (b.type.number() || b.type.is == Type::kAny);
  return possible && plan_.speculate && !has_seen(kStranger);
}

Emitter::Operand Emitter::number_of(const Operand& o) {
  if (o.type.number()) return o;
  // The register may have become one meanwhile: x * x.
  if (type(o.reg).is == Type::kAny) {
    if (state_at_ != at_) frame_state(at_);
    check_number(o.reg);
  }
  return operand(o.reg);
}

void Emitter::arithmetic(Op op, Operand a, Operand b) {
  bool numbers = a.type.number() && b.type.number();
  if (!numbers && numbers_so_far(a, b)) {
    a = number_of(a);
    b = number_of(b);
    numbers = true;
  }
  if (!numbers) return any_arithmetic(op, a, b);
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
  if (op == Op::kMod || op == Op::kFloorDiv) {
    // For such operands, what the machine does rounds down and takes the right sign.
    guard(ir_.bin(Opcode::kGeS, a.value, ir_.i32(0)), GuardReason::kOverflow);
    guard(ir_.bin(Opcode::kGtS, b.value, ir_.i32(0)), GuardReason::kOverflow);
    Opcode divide = op == Op::kMod ? Opcode::kRemU : Opcode::kDivU;
    return set(instr()->a, {Type::kInt}, ir_.bin(divide, a.value, b.value));
  }
  Value fits = ir_.un(Opcode::kEqz, ir_.bin(row.overflows, a.value, b.value));
  guard(fits, GuardReason::kOverflow);
  Value v = ir_.bin(row.compute, a.value, b.value);
  const Instr& i = *instr();
  bool by_positive = i.op == Op::kMulK && as_int(vm_.code.constants[static_cast<size_t>(i.d)]) > 0;
  if (op == Op::kMul && !by_positive) {
    // 0 * -1 is minus zero, which is a double.
    Value negative = ir_.bin(Opcode::kLtS, ir_.bin(Opcode::kOr, a.value, b.value), ir_.i32(0));
    Value minus_zero = ir_.bin(Opcode::kAnd, ir_.un(Opcode::kEqz, v), negative);
    guard(ir_.un(Opcode::kEqz, minus_zero), GuardReason::kOverflow);
  }
  set(i.a, {Type::kInt}, v);
}

void Emitter::double_arithmetic(Op op, const Operand& a, const Operand& b) {
  Value x = double_of(a), y = double_of(b), v;
  switch (op) {
    case Op::kAdd: v = ir_.bin(Opcode::kFAdd, x, y); break;
    case Op::kSub: v = ir_.bin(Opcode::kFSub, x, y); break;
    case Op::kMul: v = ir_.bin(Opcode::kFMul, x, y); break;
    case Op::kDiv: v = ir_.bin(Opcode::kFDiv, x, y); break;
    case Op::kFloorDiv: v = ir_.un(Opcode::kFFloor, ir_.bin(Opcode::kFDiv, x, y)); break;
    default: v = ir_.call(helper::kModulo, {x, y}, false); break;
  }
  set(instr()->a, {Type::kDouble}, v);
}

// Whatever the operands are: sums of ints on the spot, all else by the helper.
void Emitter::any_arithmetic(Op op, const Operand& a, const Operand& b) {
  Value x = box(a), y = box(b);
  auto slow = [&] { return ir_.call(helper::kArithmetic, {vm(), where(), x, y}, true); };
  auto maybe_int = [](const Operand& o) {
    return o.type.is == Type::kAny || o.type.is == Type::kInt;
  };
  bool sums = (op == Op::kAdd || op == Op::kSub) && maybe_int(a) && maybe_int(b);
  if (!sums) return set(instr()->a, {Type::kAny}, slow());
  Value ints = ir_.bin(Opcode::kGeU, ir_.bin(Opcode::kAnd, x, y), ir_.i64(kIntTag));
  Value v = either(
      ints, kI64,
      [&] {
        Value m = ir_.convert(Opcode::kWrap, kI32, x);
        Value n = ir_.convert(Opcode::kWrap, kI32, y);
        bool adds = op == Op::kAdd;
        Value sum = ir_.bin(adds ? Opcode::kAdd : Opcode::kSub, m, n);
        Value over = ir_.bin(adds ? Opcode::kAddOverflows : Opcode::kSubOverflows, m, n);
        // The sum of two ints that is none is exact as a double.
        Value wide =
            ir_.bin(adds ? Opcode::kAdd : Opcode::kSub, ir_.convert(Opcode::kExtendS, kI64, m),
                    ir_.convert(Opcode::kExtendS, kI64, n));
        Value d = ir_.convert(Opcode::kConvertS, kF64, wide);
        return ir_.select(over, box({{Type::kDouble}, d}), box({{Type::kInt}, sum}));
      },
      slow);
  set(instr()->a, {Type::kAny}, v);
}

void Emitter::negate() {
  Operand o = operand(instr()->b);
  if (!o.type.number() && numbers_so_far(o, o)) o = number_of(o);
  if (!o.type.number()) {
    Value v = ir_.call(helper::kNegate, {vm(), where(), box(o)}, true);
    return set(instr()->a, {Type::kAny}, v);
  }
  if (o.type.is == Type::kInt && plan_.speculate && !has_seen(kOverflow)) {
    guard(ir_.bin(Opcode::kNe, o.value, ir_.i32(0)), GuardReason::kOverflow);
    guard(ir_.bin(Opcode::kNe, o.value, ir_.i32(INT32_MIN)), GuardReason::kOverflow);
    return set(instr()->a, {Type::kInt}, ir_.bin(Opcode::kSub, ir_.i32(0), o.value));
  }
  set(instr()->a, {Type::kDouble}, ir_.un(Opcode::kFNeg, double_of(o)));
}

Value Emitter::compare(Op op, Operand a, Operand b) {
  if (op == Op::kEqual) return equals(a, b);
  bool numbers = a.type.number() && b.type.number();
  if (!numbers && numbers_so_far(a, b)) {
    a = number_of(a);
    b = number_of(b);
    numbers = true;
  }
  bool less = op == Op::kLess;
  bool ints = a.type.is == Type::kInt && b.type.is == Type::kInt;
  if (ints) return ir_.bin(less ? Opcode::kLtS : Opcode::kLeS, a.value, b.value);
  if (numbers) return ir_.bin(less ? Opcode::kFLt : Opcode::kFLe, double_of(a), double_of(b));
  return ir_.call(helper::kCompare, {vm(), where(), box(a), box(b)}, true);
}

Value Emitter::equals(const Operand& a, const Operand& b) {
  if (a.type.number() && b.type.number()) {
    bool ints = a.type.is == Type::kInt && b.type.is == Type::kInt;
    return ints ? ir_.bin(Opcode::kEq, a.value, b.value)
                : ir_.bin(Opcode::kFEq, double_of(a), double_of(b));
  }
  // All but numbers and strings are equal when they are the same.
  auto by_identity = [](const Operand& o) {
    return o.type.is != Type::kAny && o.type.is != Type::kString && !o.type.number();
  };
  Value x = box(a), y = box(b);
  if (by_identity(a) || by_identity(b)) return ir_.bin(Opcode::kEq, x, y);
  return ir_.call(helper::kEqual, {x, y}, false);
}

void Emitter::for_prepare() {
  int from = instr()->a, to = from + 1;
  if (type(from).is == Type::kInt && type(to).is == Type::kInt) return;
  Value a = boxed(from), b = boxed(to);
  Value first = ir_.call(helper::kForFrom, {vm(), where(), a, b}, true);
  Value last = ir_.call(helper::kForTo, {vm(), where(), a, b}, true);
  set(from, {Type::kInt}, first);
  set(to, {Type::kInt}, last);
}

}  // namespace calc
