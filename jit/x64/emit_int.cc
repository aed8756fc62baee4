#include "jit/x64/emit_impl.h"
#include "jit/x64/macros.h"

namespace uptier::jit::x64 {

// d = the operand, in its low `bytes` bytes.
void Emitter::copy(const Gp& d, const MInst& i, uint8_t n, uint32_t bytes) {
  Location l = at(i, n);
  if (l.is_reg() && l.index() == d.id()) return;
  if (l.is_reg()) {
    a_.mov(gp(d, bytes == 8), gp(x86::gpq(l.index()), bytes == 8));
  } else {
    a_.mov(gp(d, bytes == 8), place(l, bytes));
  }
}

void Emitter::alu_op(AluOp op, const Gp& d, const Gp& s) {
  switch (op) {
    case AluOp::kAdd: a_.add(d, s); return;
    case AluOp::kSub: a_.sub(d, s); return;
    case AluOp::kAnd: a_.and_(d, s); return;
    case AluOp::kOr: a_.or_(d, s); return;
    case AluOp::kXor: a_.xor_(d, s); return;
    case AluOp::kMul: a_.imul(d, s); return;
  }
}

void Emitter::alu_op(AluOp op, const Gp& d, const Mem& s) {
  switch (op) {
    case AluOp::kAdd: a_.add(d, s); return;
    case AluOp::kSub: a_.sub(d, s); return;
    case AluOp::kAnd: a_.and_(d, s); return;
    case AluOp::kOr: a_.or_(d, s); return;
    case AluOp::kXor: a_.xor_(d, s); return;
    case AluOp::kMul: a_.imul(d, s); return;
  }
}

void Emitter::alu_op(AluOp op, const Gp& d, int32_t s) {
  switch (op) {
    case AluOp::kAdd: a_.add(d, imm(s)); return;
    case AluOp::kSub: a_.sub(d, imm(s)); return;
    case AluOp::kAnd: a_.and_(d, imm(s)); return;
    case AluOp::kOr: a_.or_(d, imm(s)); return;
    case AluOp::kXor: a_.xor_(d, imm(s)); return;
    case AluOp::kMul: a_.imul(d, d, imm(s)); return;
  }
}

// A three-address sum is an lea.
bool Emitter::alu_as_lea(const MInst& i, AluOp op) {
  if (op != AluOp::kAdd || !at(i, i.a).is_reg() || at(i, i.a) == at(i, i.d)) return false;
  Gp d = gp(gp_at(i, i.d), i.width == 8);
  if (i.form == Form::kRI) {
    a_.lea(d, x86::ptr(gp_at(i, i.a), static_cast<int32_t>(i.imm)));
    return true;
  }
  bool registers = i.form == Form::kRR && at(i, i.b).is_reg() && at(i, i.b) != at(i, i.d);
  if (registers) a_.lea(d, x86::ptr(gp_at(i, i.a), gp_at(i, i.b)));
  return registers;
}

void Emitter::alu(const MInst& i) {
  auto op = static_cast<AluOp>(i.sub);
  if (alu_as_lea(i, op)) return;
  Gp d = gp(gp_at(i, i.d), i.width == 8);
  uint8_t first = i.a, second = i.b;
  // Only a commutative operation has its result in the register of the second source.
  if (i.form == Form::kRR && at(i, i.b) == at(i, i.d) && at(i, i.a) != at(i, i.d)) {
    std::swap(first, second);
  }
  copy(d, i, first, i.width);
  switch (i.form) {
    case Form::kRI: alu_op(op, d, static_cast<int32_t>(i.imm)); break;
    case Form::kRC: with_constant(i.imm, [&](const auto& s) { alu_op(op, d, s); }); break;
    case Form::kRM:
      claim(i);
      alu_op(op, d, memory(i, i.width));
      break;
    default: with(i, second, i.width, [&](const auto& s) { alu_op(op, d, s); });
  }
  if (op != AluOp::kMul) flags_ = {b_.offset(), d.id(), i.width};
}

// Traps on signed overflow, or returns whether it occurred.
void Emitter::alu_checked(const MInst& i) {
  auto op = static_cast<AluOp>(i.sub);
  bool traps = i.op == MOp::kAluTrap;
  Gp d = gp(traps ? gp_at(i, i.d) : Gp(x86::r11), i.width == 8);
  copy(d, i, i.a, i.width);
  with(i, i.b, i.width, [&](const auto& s) { alu_op(op, d, s); });
  if (traps) {
    a_.jo(b_.trap_label(i.trap, i.loc));
  } else {
    a_.seto(x86::r11b);
    a_.movzx(gp_at(i, i.d).r32(), x86::r11b);
  }
}

void Emitter::mul_imm(const MInst& i) {
  Gp d = gp(gp_at(i, i.d), i.width == 8);
  auto k = static_cast<int32_t>(i.imm);
  if (i.form == Form::kM) {
    claim(i);
    a_.imul(d, memory(i, i.width), imm(k));
  } else {
    with(i, i.a, i.width, [&](const auto& s) { a_.imul(d, s, imm(k)); });
  }
}

void Emitter::shift_imm(const MInst& i) {
  auto op = static_cast<ShiftOp>(i.sub);
  Gp d = gp(gp_at(i, i.d), i.width == 8);
  Location from = at(i, i.a);
  bool elsewhere = from.is_reg() && from != at(i, i.d);
  bool rotates = op == ShiftOp::kRol || op == ShiftOp::kRor;
  auto count = static_cast<uint32_t>(i.imm);
  if (elsewhere && op == ShiftOp::kShl && count == 1) {
    a_.lea(d, x86::ptr(gp_at(i, i.a), gp_at(i, i.a)));
    return;
  }
  if (elsewhere && rotates && bmi2_) {
    uint32_t right = op == ShiftOp::kRor ? count : (8u * i.width - count) & (8u * i.width - 1);
    a_.rorx(d, gp(gp_at(i, i.a), i.width == 8), imm(right));
    return;
  }
  copy(d, i, i.a, i.width);
  switch (op) {
    case ShiftOp::kShl: count == 1 ? a_.add(d, d) : a_.shl(d, imm(count)); return;
    case ShiftOp::kShr: a_.shr(d, imm(count)); return;
    case ShiftOp::kSar: a_.sar(d, imm(count)); return;
    case ShiftOp::kRol: a_.rol(d, imm(count)); return;
    case ShiftOp::kRor: a_.ror(d, imm(count)); return;
  }
}

void Emitter::shift_var(const MInst& i) {
  auto op = static_cast<ShiftOp>(i.sub);
  bool wide = i.width == 8;
  Gp d = gp(gp_at(i, i.d), wide);
  if (i.flags == 0) {
    Gp value = gp(gp_at(i, i.a), wide), count = gp(gp_at(i, i.b), wide);
    switch (op) {
      case ShiftOp::kShl: a_.shlx(d, value, count); return;
      case ShiftOp::kShr: a_.shrx(d, value, count); return;
      default: a_.sarx(d, value, count); return;
    }
  }
  copy(d, i, i.a, i.width);
  switch (op) {
    case ShiftOp::kShl: a_.shl(d, x86::cl); return;
    case ShiftOp::kShr: a_.shr(d, x86::cl); return;
    case ShiftOp::kSar: a_.sar(d, x86::cl); return;
    case ShiftOp::kRol: a_.rol(d, x86::cl); return;
    case ShiftOp::kRor: a_.ror(d, x86::cl); return;
  }
}

void Emitter::lea(const MInst& i) { a_.lea(gp(gp_at(i, i.d), i.width == 8), memory(i, 0)); }

void Emitter::extend(const MInst& i) {
  Gp d = gp(gp_at(i, i.d), i.width == 8);
  Location from = at(i, i.a);
  auto source = [&](auto f, uint32_t bytes) {
    if (!from.is_reg()) return f(place(from, bytes));
    Gp s = x86::gpq(from.index());
    bytes == 1 ? f(s.r8()) : bytes == 2 ? f(s.r16()) : f(s.r32());
  };
  switch (static_cast<Extension>(i.sub)) {
    case Extension::kZero8: return source([&](const auto& s) { a_.movzx(d.r32(), s); }, 1);
    case Extension::kZero16: return source([&](const auto& s) { a_.movzx(d.r32(), s); }, 2);
    case Extension::kZero32: return source([&](const auto& s) { a_.mov(d.r32(), s); }, 4);
    case Extension::kSign8: return source([&](const auto& s) { a_.movsx(d, s); }, 1);
    case Extension::kSign16: return source([&](const auto& s) { a_.movsx(d, s); }, 2);
    case Extension::kSign32: return source([&](const auto& s) { a_.movsxd(d.r64(), s); }, 4);
    case Extension::kNone: return;
  }
}

void Emitter::load(const MInst& i) {
  Gp d = gp_at(i, i.d);
  Gp full = gp(d, is_wide(static_cast<Type>(i.to)));
  Mem from = memory(i, i.width);
  claim(i);
  switch (static_cast<Extension>(i.sub)) {
    case Extension::kNone: a_.mov(full, from); return;
    case Extension::kZero8:
    case Extension::kZero16: a_.movzx(d.r32(), from); return;
    case Extension::kZero32: a_.mov(d.r32(), from); return;
    case Extension::kSign8:
    case Extension::kSign16: a_.movsx(full, from); return;
    case Extension::kSign32: a_.movsxd(d.r64(), from); return;
  }
}

void Emitter::store(const MInst& i) {
  Mem to = memory(i, i.width);
  if (i.form == Form::kMI) {
    claim(i);
    auto value = static_cast<int64_t>(i.imm);
    a_.mov(to, i.width == 1   ? imm(static_cast<int8_t>(value))
               : i.width == 2 ? imm(static_cast<int16_t>(value))
                              : imm(static_cast<int32_t>(value)));
    return;
  }
  Gp s = gp_at(i, i.a);
  claim(i);
  a_.mov(to, i.width == 1 ? s.r8() : i.width == 2 ? s.r16() : i.width == 4 ? s.r32() : s);
}

void Emitter::alu_store(const MInst& i) {
  Mem to = memory(i, i.width);
  claim(i);
  auto apply = [&](const auto& s) {
    switch (static_cast<AluOp>(i.sub)) {
      case AluOp::kAdd: a_.add(to, s); return;
      case AluOp::kSub: a_.sub(to, s); return;
      case AluOp::kAnd: a_.and_(to, s); return;
      case AluOp::kOr: a_.or_(to, s); return;
      default: a_.xor_(to, s); return;
    }
  };
  if (i.form == Form::kMI) {
    apply(imm(static_cast<int32_t>(i.imm)));
  } else {
    apply(gp(gp_at(i, i.a), i.width == 8));
  }
}

void Emitter::divide(const MInst& i) {
  bool wide = i.width == 8;
  Divisor known = i.form == Form::kRI ? Divisor::of_constant(i.imm, wide) : Divisor{};
  emit_division(b_, static_cast<Opcode>(i.sub), wide, gp_at(i, i.b), known, i.loc);
}

void Emitter::mul_high(const MInst& i) {
  bool is_signed = static_cast<Opcode>(i.sub) == Opcode::kMulHighS;
  with(i, i.b, i.width, [&](const auto& s) { is_signed ? a_.imul(s) : a_.mul(s); });
}

}  // namespace uptier::jit::x64
