// Integer arithmetic.
#include "jit/x64/baseline_assembler.h"

#include <utility>

namespace uptier::jit::x64 {

// d = d op v, where v may be a register, a home slot, or an immediate.
void BaselineAssembler::apply(Binary op, const Gp& d, Value v, bool wide) {
  Gp to = gp(d, wide);
  auto emit = [&](const auto& s) {
    switch (op) {
      case Binary::kAdd: a_.add(to, s); return;
      case Binary::kSub: a_.sub(to, s); return;
      case Binary::kMul: a_.imul(to, s); return;
      case Binary::kAnd: a_.and_(to, s); return;
      case Binary::kOr: a_.or_(to, s); return;
      case Binary::kXor: a_.xor_(to, s); return;
    }
  };
  bool from_home = !values_.in_register(v) && !values_.is_constant(v) && values_.uses(v) == 1;
  if (values_.is_immediate(v)) {
    emit(imm(static_cast<int32_t>(values_.constant_bits(v))));
  } else if (from_home) {
    emit(values_.home_operand(v));
  } else {
    emit(gp(values_.gp_of(v), wide));
  }
  values_.use(v);
}

void BaselineAssembler::binary(Binary op, Type t, Value result, Value a, Value b) {
  bool commutes = op != Binary::kSub;
  bool overwritable = values_.in_register(a) && values_.dies(a);
  if (commutes &&
      (values_.is_constant(a) || (!overwritable && values_.in_register(b) && values_.dies(b)))) {
    std::swap(a, b);
  }
  bool wide = is_wide(t);
  if (op == Binary::kMul && values_.is_immediate(b)) return multiply_by_constant(t, result, a, b);
  if (op == Binary::kAdd && add_to_third(t, result, a, b)) return;
  Gp d = values_.take_gp(a);
  apply(op, d, b, wide);
  values_.define(result, d);
}

// If the first operand lives on, lea makes the sum in a new register without a copy.
bool BaselineAssembler::add_to_third(Type t, Value result, Value a, Value b) {
  if (!values_.in_register(a) || values_.dies(a)) return false;
  if (!values_.is_immediate(b) && !values_.in_register(b)) return false;
  Gp base = values_.gp_of(a);
  Mem sum = values_.is_immediate(b) ? x86::ptr(base, static_cast<int32_t>(values_.constant_bits(b)))
                                    : x86::ptr(base, values_.gp_of(b));
  Gp d = values_.new_gp();
  a_.lea(gp(d, is_wide(t)), sum);
  values_.use(a);
  values_.use(b);
  values_.define(result, d);
  return true;
}

void BaselineAssembler::multiply_by_constant(Type t, Value result, Value a, Value constant) {
  bool wide = is_wide(t);
  Gp source = gp(values_.gp_of(a), wide);
  auto factor = static_cast<int32_t>(values_.constant_bits(constant));
  values_.use(a);
  values_.use(constant);
  Gp d = values_.new_gp();
  a_.imul(gp(d, wide), source, imm(factor));
  values_.define(result, d);
}

void BaselineAssembler::shift(Opcode op, Type t, Value result, Value v, Value count) {
  bool wide = is_wide(t);
  auto emit = [&](const Gp& d, const auto& n) {
    switch (op) {
      case Opcode::kShl: a_.shl(d, n); return;
      case Opcode::kShrS: a_.sar(d, n); return;
      case Opcode::kShrU: a_.shr(d, n); return;
      case Opcode::kRotl: a_.rol(d, n); return;
      default: a_.ror(d, n); return;
    }
  };
  Gp d;
  if (values_.is_constant(count)) {
    d = values_.take_gp(v);
    auto n = static_cast<uint32_t>(values_.constant_bits(count)) & (wide ? 63 : 31);
    emit(gp(d, wide), imm(n));
    if (n == 0 && !wide) emit_zero_extend(b_, d, d);  // a shift by 0 may leave the upper half
    values_.use(count);
  } else {
    values_.take_in(count, Gp::kIdCx);
    d = values_.take_gp(v);
    emit(gp(d, wide), x86::cl);
  }
  // The same holds for a variable count that is 0 at run time, so the upper half is not known to be
  // clean.
  bool clean = wide || values_.is_constant(count);
  values_.define(result, d, clean);
}

void BaselineAssembler::divide(Opcode op, Type t, Value result, Value dividend, Value divisor,
                               Origin loc) {
  bool wide = is_wide(t);
  Divisor known;
  if (values_.is_constant(divisor)) {
    known = Divisor::of_constant(values_.constant_bits(divisor), wide);
  }
  values_.vacate(Gp::kIdDx);
  values_.take_in(dividend, Gp::kIdAx);
  Gp by = values_.gp_of(divisor);
  emit_division(b_, op, wide, by, known, loc);
  values_.use(divisor);
  bool quotient = op == Opcode::kDivS || op == Opcode::kDivU;
  values_.define(result, quotient ? x86::rax : x86::rdx);
}

// The instruction leaves the product in rdx and rax.
void BaselineAssembler::multiply_high(Opcode op, Type t, Value result, Value x, Value y) {
  bool wide = is_wide(t);
  values_.vacate(Gp::kIdDx);
  values_.take_in(x, Gp::kIdAx);
  Gp by = gp(values_.gp_of(y), wide);
  op == Opcode::kMulHighS ? a_.imul(by) : a_.mul(by);
  values_.use(y);
  values_.define(result, x86::rdx);
}

void BaselineAssembler::bit_count(Opcode op, Type t, Value result, Value v) {
  Gp source = values_.gp_of(v);
  values_.use(v);
  Gp d = values_.new_gp();
  emit_bit_count(b_, op, is_wide(t), d, source, kScratch);
  values_.define(result, d);
}

void BaselineAssembler::zero(Value result) {
  Gp d = values_.new_gp();
  a_.xor_(d.r32(), d.r32());
  values_.define(result, d);
}

void BaselineAssembler::sign_extend(Opcode op, Type t, Value result, Value v) {
  Gp source = values_.gp_of(v);
  values_.use(v);
  Gp to = values_.new_gp();
  Gp d = gp(to, is_wide(t));
  switch (op) {
    case Opcode::kSext8: a_.movsx(d, source.r8()); break;
    case Opcode::kSext16: a_.movsx(d, source.r16()); break;
    default: a_.movsxd(to.r64(), source.r32()); break;
  }
  values_.define(result, to);
}

void BaselineAssembler::checked(Binary op, Type t, Value result, Value a, Value b, Origin loc) {
  Gp d = values_.take_gp(a);
  apply(op, d, b, is_wide(t));
  a_.jo(b_.trap_label(TrapCode::kIntegerOverflow, loc));
  values_.define(result, d);
}

}  // namespace uptier::jit::x64
