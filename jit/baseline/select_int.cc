// Integer arithmetic.
#include <utility>

#include "jit/baseline/selector.h"

namespace uptier::jit::baseline {

// d = d op v, where v may be a register, a home, or an immediate.
void Selector::apply(Binary op, const Gp& d, Value v, bool wide) {
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

void Selector::binary(const Inst& i, Binary op) {
  Value a = f_.args(i)[0], b = f_.args(i)[1];
  bool commutes = op != Binary::kSub;
  bool overwritable = values_.in_register(a) && values_.dies(a);
  if (commutes &&
      (values_.is_constant(a) || (!overwritable && values_.in_register(b) && values_.dies(b)))) {
    std::swap(a, b);
  }
  bool wide = is_wide(i.type);
  if (op == Binary::kMul && values_.is_immediate(b)) return multiply_by_constant(i, a, b);
  if (op == Binary::kAdd && add_to_third(i, a, b)) return;
  Gp d = values_.take_gp(a);
  apply(op, d, b, wide);
  values_.define(i.result, d);
}

// A sum whose first operand lives on needs no copy of it.
bool Selector::add_to_third(const Inst& i, Value a, Value b) {
  if (!values_.in_register(a) || values_.dies(a)) return false;
  if (!values_.is_immediate(b) && !values_.in_register(b)) return false;
  Gp base = values_.gp_of(a);
  Mem sum = values_.is_immediate(b) ? x86::ptr(base, static_cast<int32_t>(values_.constant_bits(b)))
                                    : x86::ptr(base, values_.gp_of(b));
  Gp d = values_.new_gp();
  a_.lea(gp(d, is_wide(i.type)), sum);
  values_.use(a);
  values_.use(b);
  values_.define(i.result, d);
  return true;
}

void Selector::multiply_by_constant(const Inst& i, Value a, Value constant) {
  bool wide = is_wide(i.type);
  Gp source = gp(values_.gp_of(a), wide);
  auto factor = static_cast<int32_t>(values_.constant_bits(constant));
  values_.use(a);
  values_.use(constant);
  Gp d = values_.new_gp();
  a_.imul(gp(d, wide), source, imm(factor));
  values_.define(i.result, d);
}

void Selector::shift(const Inst& i) {
  Value v = f_.args(i)[0], count = f_.args(i)[1];
  bool wide = is_wide(i.type);
  auto emit = [&](const Gp& d, const auto& n) {
    switch (i.op) {
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
  // The same holds for a count that happens to be 0 at run time, unless the copy was clean.
  bool clean = wide || values_.is_constant(count);
  values_.define(i.result, d, clean);
}

void Selector::divide(const Inst& i) {
  Value dividend = f_.args(i)[0], divisor = f_.args(i)[1];
  bool wide = is_wide(i.type);
  Divisor known;
  if (values_.is_constant(divisor)) {
    known = Divisor::of_constant(values_.constant_bits(divisor), wide);
  }
  values_.vacate(Gp::kIdDx);
  values_.take_in(dividend, Gp::kIdAx);
  Gp by = values_.gp_of(divisor);
  emit_division(b_, i.op, wide, by, known, i.loc);
  values_.use(divisor);
  bool quotient = i.op == Opcode::kDivS || i.op == Opcode::kDivU;
  values_.define(i.result, quotient ? x86::rax : x86::rdx);
}

// The product lies in rdx and rax.
void Selector::multiply_high(const Inst& i) {
  Value x = f_.args(i)[0], y = f_.args(i)[1];
  bool wide = is_wide(i.type);
  values_.vacate(Gp::kIdDx);
  values_.take_in(x, Gp::kIdAx);
  Gp by = gp(values_.gp_of(y), wide);
  i.op == Opcode::kMulHighS ? a_.imul(by) : a_.mul(by);
  values_.use(y);
  values_.define(i.result, x86::rdx);
}

void Selector::bit_count(const Inst& i) {
  Value v = f_.args(i)[0];
  Gp source = values_.gp_of(v);
  values_.use(v);
  Gp d = values_.new_gp();
  emit_bit_count(b_, i.op, is_wide(i.type), d, source, kScratch);
  values_.define(i.result, d);
}

// Nothing is known here, and what comes from here into other code holds nothing else.
void Selector::known_count(const Inst& i) {
  Gp d = values_.new_gp();
  a_.xor_(d.r32(), d.r32());
  values_.define(i.result, d);
}

void Selector::sign_extend(const Inst& i) {
  Value v = f_.args(i)[0];
  Gp source = values_.gp_of(v);
  values_.use(v);
  Gp to = values_.new_gp();
  Gp d = gp(to, is_wide(i.type));
  switch (i.op) {
    case Opcode::kSext8: a_.movsx(d, source.r8()); break;
    case Opcode::kSext16: a_.movsx(d, source.r16()); break;
    default: a_.movsxd(to.r64(), source.r32()); break;
  }
  values_.define(i.result, to);
}

void Selector::overflow_trap(const Inst& i) {
  Binary op = i.op == Opcode::kAddTrap   ? Binary::kAdd
              : i.op == Opcode::kSubTrap ? Binary::kSub
                                         : Binary::kMul;
  Value b = f_.args(i)[1];
  Gp d = values_.take_gp(f_.args(i)[0]);
  apply(op, d, b, is_wide(i.type));
  a_.jo(b_.trap_label(TrapCode::kIntegerOverflow, i.loc));
  values_.define(i.result, d);
}

}  // namespace uptier::jit::baseline
