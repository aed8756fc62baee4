// Float arithmetic and conversions.
#include "jit/x64/baseline_assembler.h"

#include <cassert>

namespace uptier::jit::x64 {

asmjit::Operand BaselineAssembler::float_operand(Value v) {
  if (values_.in_register(v)) return values_.xmm_of(v);
  if (values_.is_constant(v)) {
    uint64_t bits = values_.constant_bits(v);
    bool wide = is_wide(values_.type_of(v));
    if (b_.hides_float(bits, wide)) {
      emit_constant(b_, wide, kXmmScratch, bits);
      return kXmmScratch;
    }
    if (wide) return b_.constant64(bits);
    return b_.constant32(static_cast<uint32_t>(bits));
  }
  if (values_.uses(v) == 1) return values_.home_operand(v);
  return values_.xmm_of(v);
}

void BaselineAssembler::float_op(Opcode op, bool wide, const Xmm& d, const asmjit::Operand& s) {
  namespace I = x86::Inst;
  uint32_t id = 0;
  switch (op) {
    case Opcode::kFAdd: id = wide ? I::kIdAddsd : I::kIdAddss; break;
    case Opcode::kFSub: id = wide ? I::kIdSubsd : I::kIdSubss; break;
    case Opcode::kFMul: id = wide ? I::kIdMulsd : I::kIdMulss; break;
    case Opcode::kFDiv: id = wide ? I::kIdDivsd : I::kIdDivss; break;
    default:
      assert(op == Opcode::kFSqrt);
      id = wide ? I::kIdSqrtsd : I::kIdSqrtss;
      break;
  }
  a_.emit(id, d, s);
}

void BaselineAssembler::float_binary(Opcode op, Type t, Value result, Value x, Value y) {
  bool wide = t == Type::kF64;
  Xmm d = values_.take_xmm(x);
  switch (op) {
    case Opcode::kFMin:
    case Opcode::kFMax: emit_float_min_max(b_, op, wide, d, values_.xmm_of(y)); break;
    case Opcode::kFCopysign: emit_copysign(b_, wide, d, values_.xmm_of(y), kXmmScratch); break;
    default: float_op(op, wide, d, float_operand(y)); break;
  }
  values_.use(y);
  values_.define(result, d);
}

void BaselineAssembler::float_unary(Opcode op, Type t, Value result, Value v) {
  bool wide = t == Type::kF64;
  if (op == Opcode::kFAbs || op == Opcode::kFNeg) {
    Xmm d = values_.take_xmm(v);
    emit_sign_op(b_, op, wide, d);
    return values_.define(result, d);
  }
  Xmm source = values_.xmm_of(v);
  values_.use(v);
  Xmm d = values_.new_xmm();
  if (op == Opcode::kFSqrt) {
    float_op(op, wide, d, source);
  } else {
    emit_round(b_, op, wide, d, source);
  }
  values_.define(result, d);
}

void BaselineAssembler::convert_width(Opcode op, Value result, Value v) {
  Xmm source = values_.xmm_of(v);
  values_.use(v);
  Xmm d = values_.new_xmm();
  if (d != source) a_.xorps(d, d);  // only the low lane is written; do not wait for the rest
  op == Opcode::kPromote ? a_.cvtss2sd(d, source) : a_.cvtsd2ss(d, source);
  values_.define(result, d);
}

void BaselineAssembler::bitcast(Type t, Value result, Value v) {
  bool wide = is_wide(t);
  bool from_float = is_float(values_.type_of(v)), to_float = is_float(t);
  if (from_float && to_float) return values_.define(result, values_.take_xmm(v));
  if (!from_float && !to_float) return values_.define(result, values_.take_gp(v), wide);
  if (to_float) {
    Gp source = values_.gp_of(v);
    Xmm d = values_.new_xmm();
    wide ? a_.movq(d, source) : a_.movd(d, source.r32());
    values_.use(v);
    return values_.define(result, d);
  }
  Xmm source = values_.xmm_of(v);
  Gp d = values_.new_gp();
  wide ? a_.movq(d, source) : a_.movd(d.r32(), source);
  values_.use(v);
  values_.define(result, d);
}

void BaselineAssembler::truncate(Opcode op, Type t, Value result, Value v, Origin loc) {
  bool to_wide = is_wide(t), from_wide = is_wide(values_.type_of(v));
  Xmm source = values_.xmm_of(v);
  Gp d = values_.new_gp();
  if (op == Opcode::kTruncS || op == Opcode::kTruncU) {
    emit_trunc(b_, op, to_wide, from_wide, d, source, kScratch, kXmmScratch, loc);
  } else {
    emit_trunc_sat(b_, op, to_wide, from_wide, d, source, kScratch, kXmmScratch);
  }
  values_.use(v);
  values_.define(result, d);
}

void BaselineAssembler::convert_int(Opcode op, Type t, Value result, Value v) {
  Gp source = values_.gp_of(v);
  Xmm d = values_.new_xmm();
  emit_convert(b_, op, is_wide(t), is_wide(values_.type_of(v)), d, source, kScratch);
  values_.use(v);
  values_.define(result, d);
}

// An i32 in a register is an i64 whose upper half is undefined. So wrap needs no instruction, and
// extend_u needs none if the upper half is known to be zero.
void BaselineAssembler::extend(Opcode op, Value result, Value v) {
  if (op == Opcode::kWrap) return values_.define(result, values_.take_gp(v), false);
  if (op == Opcode::kExtendU) {
    values_.index_of(v);
    return values_.define(result, values_.take_gp(v));
  }
  Gp source = values_.gp_of(v);
  values_.use(v);
  Gp d = values_.new_gp();
  a_.movsxd(d, source.r32());
  values_.define(result, d);
}

}  // namespace uptier::jit::x64
