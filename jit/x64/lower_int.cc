#include <bit>

#include "jit/x64/lower_impl.h"

namespace uptier::jit::x64 {
namespace {

unsigned width_of(Type t) { return is_wide(t) ? 8 : 4; }

}  // namespace

void Lowering::lower_binary(const Inst& i) {
  switch (i.op) {
    case Opcode::kAdd: return lower_add(i);
    case Opcode::kSub: return lower_alu(i, AluOp::kSub);
    case Opcode::kMul: return lower_mul(i);
    case Opcode::kAnd: return lower_and(i);
    case Opcode::kOr: return lower_alu(i, AluOp::kOr);
    case Opcode::kXor: return lower_alu(i, AluOp::kXor);
    case Opcode::kShl: return lower_shift(i, ShiftOp::kShl);
    case Opcode::kShrS: return lower_shift(i, ShiftOp::kSar);
    case Opcode::kShrU: return lower_shift(i, ShiftOp::kShr);
    case Opcode::kRotl: return lower_shift(i, ShiftOp::kRol);
    case Opcode::kRotr: return lower_shift(i, ShiftOp::kRor);
    case Opcode::kMulHighS:
    case Opcode::kMulHighU: return lower_mul_high(i);
    case Opcode::kDivS:
    case Opcode::kDivU:
    case Opcode::kRemS:
    case Opcode::kRemU: return lower_div(i);
    default: return lower_trapping(i);
  }
}

void Lowering::lower_alu(const Inst& i, AluOp op, MOp kind) {
  Value a = f_.args(i)[0], b = f_.args(i)[1];
  bool commutes = (info(i.op).effects & kCommutes) != 0;
  if (commutes && !constant_of(b) && foldable_load(a) && !foldable_load(b)) std::swap(a, b);
  // -x and ~x have instructions of their own.
  bool negates = op == AluOp::kSub && constant_of(a) == 0u && kind == MOp::kAlu;
  bool inverts = op == AluOp::kXor && imm_of(b) == -1 && kind == MOp::kAlu;
  if (negates || inverts) {
    begin(negates ? MOp::kNeg : MOp::kNot, width_of(i.type));
    def_d(i.result);
    use_a(negates ? b : a);
    return emit();
  }
  begin(kind, width_of(i.type), i.origin());
  cur_.sub = static_cast<uint8_t>(op);
  def_d(i.result);
  use_a(a);
  // A commutative operation may write its result over the second source.
  bool exchange = commutes && kind == MOp::kAlu && !foldable_load(b);
  add_source(b, exchange ? Role::kUse : Role::kLateUse, true);
  emit();
}

void Lowering::lower_add(const Inst& i) {
  if (!lower_scaled_add(i)) lower_alu(i, AluOp::kAdd);
}

// a + (b << 1..3) is one lea.
bool Lowering::lower_scaled_add(const Inst& i) {
  auto args = f_.args(i);
  for (unsigned side = 0; side < 2; ++side) {
    const Inst* shift = def(args[side], Opcode::kShl);
    Value other = args[1 - side];
    if (!shift || constant_of(other)) continue;
    auto count = constant_of(f_.args(*shift)[1]);
    if (!count || *count < 1 || *count > 3) continue;
    begin(MOp::kLea, width_of(i.type));
    cur_.scale = static_cast<uint8_t>(*count);
    Value index = f_.args(*shift)[0];
    Vreg index_vreg = use(index), base = use(other);
    def_d(i.result);
    cur_.base = add(base, Role::kUse, Policy::kReg);
    cur_.index = add(index_vreg, Role::kUse, Policy::kReg);
    emit();
    return true;
  }
  return false;
}

// x * 3, 5, 9 is x + x * 2, 4, 8.
bool Lowering::lower_mul_lea(const Inst& i, uint64_t c) {
  if (c != 3 && c != 5 && c != 9) return false;
  Vreg x = vreg(f_.args(i)[0]);
  begin(MOp::kLea, width_of(i.type));
  cur_.scale = static_cast<uint8_t>(std::countr_zero(c - 1));
  def_d(i.result);
  cur_.base = add(x, Role::kUse, Policy::kReg);
  cur_.index = add(x, Role::kUse, Policy::kReg);
  emit();
  return true;
}

void Lowering::lower_mul(const Inst& i) {
  Value a = f_.args(i)[0], b = f_.args(i)[1];
  auto c = imm_of(b);
  if (!c || constant_of(a)) return lower_alu(i, AluOp::kMul);
  if (lower_mul_lea(i, static_cast<uint64_t>(static_cast<int64_t>(*c)))) return;
  begin(MOp::kMulImm, width_of(i.type), i.origin());
  cur_.imm = static_cast<uint64_t>(static_cast<int64_t>(*c));
  def_d(i.result);
  const Inst* load = foldable_load(a);
  if (load && load->op == Opcode::kLoad) {
    fold_memory(*load, Role::kUse, Form::kM);
  } else {
    use_a(a);
  }
  emit();
}

void Lowering::lower_and(const Inst& i) {
  auto c = constant_of(f_.args(i)[1]);
  if (c == 0xFFu) return lower_extend(i, Extension::kZero8);
  if (c == 0xFFFFu) return lower_extend(i, Extension::kZero16);
  if (c == 0xFFFFFFFFu && i.type == Type::kI64) return lower_extend(i, Extension::kZero32);
  lower_alu(i, AluOp::kAnd);
}

void Lowering::lower_extend(const Inst& i, Extension e) {
  begin(MOp::kExtend, width_of(i.type));
  cur_.sub = static_cast<uint8_t>(e);
  def_d(i.result);
  use_a(f_.args(i)[0]);
  emit();
}

void Lowering::lower_shift(const Inst& i, ShiftOp op) {
  Value a = f_.args(i)[0], b = f_.args(i)[1];
  unsigned bits = 8 * width_of(i.type);
  if (auto c = constant_of(b)) {
    begin(MOp::kShiftImm, width_of(i.type));
    cur_.sub = static_cast<uint8_t>(op);
    cur_.imm = *c & (bits - 1);
    def_d(i.result);
    use_a(a);
    return emit();
  }
  begin(MOp::kShiftVar, width_of(i.type));
  cur_.sub = static_cast<uint8_t>(op);
  bool rotates = op == ShiftOp::kRol || op == ShiftOp::kRor;
  if (in_.has_bmi2 && !rotates) {
    Vreg value = use(a), count = use(b);
    def_d(i.result);
    cur_.a = add(value, Role::kUse, Policy::kReg);
    cur_.b = add(count, Role::kUse, Policy::kReg);
    return emit();
  }
  // The count goes to cl. The result is in another register, because cl is taken until the result
  // is written.
  cur_.flags = 1;
  Vreg value = use(a), count = use(b);
  def_d(i.result);
  cur_.a = add(value, Role::kLateUse, Policy::kAny);
  cur_.b = add(count, Role::kUse, Policy::kFixed, Location::reg(kRcx));
  emit();
}

void Lowering::lower_div(const Inst& i) {
  bool quotient = i.op == Opcode::kDivS || i.op == Opcode::kDivU;
  Vreg dividend = use(f_.args(i)[0]), divisor = use(f_.args(i)[1]);
  begin(MOp::kDiv, width_of(i.type), i.origin());
  cur_.sub = static_cast<uint8_t>(i.op);
  cur_.d = add(vreg(i.result), Role::kDef, Policy::kFixed, Location::reg(quotient ? kRax : kRdx));
  cur_.a = add(dividend, Role::kUse, Policy::kFixed, Location::reg(kRax));
  cur_.b = add(divisor, Role::kLateUse, Policy::kReg);
  // A constant divisor spares the tests for 0 and -1.
  auto c = constant_of(f_.args(i)[1]);
  cur_.form = c ? Form::kRI : Form::kRR;
  if (c) cur_.imm = *c;
  emit();
}

void Lowering::lower_mul_high(const Inst& i) {
  Vreg x = use(f_.args(i)[0]), y = use(f_.args(i)[1]);
  begin(MOp::kMulHigh, width_of(i.type));
  cur_.sub = static_cast<uint8_t>(i.op);
  cur_.d = add(vreg(i.result), Role::kDef, Policy::kFixed, Location::reg(kRdx));
  cur_.a = add(x, Role::kUse, Policy::kFixed, Location::reg(kRax));
  cur_.b = add(y, Role::kLateUse, Policy::kReg);
  emit();
}

void Lowering::lower_unary(const Inst& i) {
  switch (i.op) {
    case Opcode::kSext8: return lower_extend(i, Extension::kSign8);
    case Opcode::kSext16: return lower_extend(i, Extension::kSign16);
    case Opcode::kSext32: return lower_extend(i, Extension::kSign32);
    default: break;
  }
  begin(MOp::kBits, width_of(i.type));
  cur_.sub = static_cast<uint8_t>(i.op);
  Vreg a = use(f_.args(i)[0]);
  def_d(i.result);
  cur_.a = add(a, Role::kUse, Policy::kReg);
  emit();
}

void Lowering::lower_trapping(const Inst& i) {
  AluOp op = i.op == Opcode::kAddTrap   ? AluOp::kAdd
             : i.op == Opcode::kSubTrap ? AluOp::kSub
                                        : AluOp::kMul;
  Vreg a = use(f_.args(i)[0]), b = use(f_.args(i)[1]);
  begin(MOp::kAluTrap, width_of(i.type), i.origin());
  cur_.sub = static_cast<uint8_t>(op);
  cur_.trap = TrapCode::kIntegerOverflow;
  def_d(i.result);
  cur_.a = add(a, Role::kUse, Policy::kAny);
  cur_.b = add(b, Role::kLateUse, Policy::kAny);
  emit();
}

void Lowering::lower_overflow(const Inst& i) {
  AluOp op = i.op == Opcode::kAddOverflows   ? AluOp::kAdd
             : i.op == Opcode::kSubOverflows ? AluOp::kSub
                                             : AluOp::kMul;
  Vreg a = use(f_.args(i)[0]), b = use(f_.args(i)[1]);
  begin(MOp::kAluOverflow, width_of(i.type));
  cur_.sub = static_cast<uint8_t>(op);
  def_d(i.result);
  cur_.a = add(a, Role::kUse, Policy::kAny);
  cur_.b = add(b, Role::kUse, Policy::kAny);
  emit();
}

}  // namespace uptier::jit::x64
