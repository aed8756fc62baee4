#include "jit/x64/emit_impl.h"
#include "jit/x64/macros.h"

namespace uptier::jit::x64 {

void Emitter::copy(const Xmm& d, const MInst& i, uint8_t n) {
  Location l = at(i, n);
  if (!l.is_reg()) {
    a_.movsd(d, place(l, 8));
  } else if (l.index() - 16 != d.id()) {
    a_.movaps(d, Xmm(l.index() - 16));
  }
}

// AVX has three operands. Without it, the result is computed in place, or in xmm15 if the result
// and the second source share a register.
void Emitter::float_alu(const MInst& i) {
  auto op = static_cast<Opcode>(i.sub);
  bool wide = i.width == 8;
  Xmm d = xmm_at(i, i.d);
  if (op == Opcode::kFMin || op == Opcode::kFMax) {
    copy(d, i, i.a);
    return emit_float_min_max(b_, op, wide, d, xmm_at(i, i.b));
  }
  Xmm first = xmm_at(i, i.a);
  auto three = [&](const auto& s) {
    switch (op) {
      case Opcode::kFAdd: wide ? a_.vaddsd(d, first, s) : a_.vaddss(d, first, s); return;
      case Opcode::kFSub: wide ? a_.vsubsd(d, first, s) : a_.vsubss(d, first, s); return;
      case Opcode::kFMul: wide ? a_.vmulsd(d, first, s) : a_.vmulss(d, first, s); return;
      default: wide ? a_.vdivsd(d, first, s) : a_.vdivss(d, first, s); return;
    }
  };
  auto two = [&](const Xmm& t, const auto& s) {
    switch (op) {
      case Opcode::kFAdd: wide ? a_.addsd(t, s) : a_.addss(t, s); return;
      case Opcode::kFSub: wide ? a_.subsd(t, s) : a_.subss(t, s); return;
      case Opcode::kFMul: wide ? a_.mulsd(t, s) : a_.mulss(t, s); return;
      default: wide ? a_.divsd(t, s) : a_.divss(t, s); return;
    }
  };
  bool on_second = i.form == Form::kRR && at(i, i.b) == at(i, i.d) && at(i, i.a) != at(i, i.d);
  auto apply = [&](const auto& s) {
    if (avx_) return three(s);
    Xmm t = on_second ? x86::xmm15 : d;
    if (t.id() != first.id()) a_.movaps(t, first);
    claim(i);
    two(t, s);
    if (on_second) a_.movaps(d, t);
  };
  switch (i.form) {
    case Form::kRC:
      if (b_.hides_float(i.imm, wide)) {
        emit_constant(b_, wide, x86::xmm15, i.imm);
        return apply(x86::xmm15);
      }
      return apply(wide ? b_.constant64(i.imm) : b_.constant32(static_cast<uint32_t>(i.imm)));
    case Form::kRM:
      if (avx_) claim(i);
      return apply(memory(i, i.width));
    default:
      if (at(i, i.b).is_reg()) return apply(xmm_at(i, i.b));
      return apply(place(at(i, i.b), i.width));
  }
}

void Emitter::float_unary(const MInst& i) {
  auto op = static_cast<Opcode>(i.sub);
  bool wide = i.width == 8;
  Xmm d = xmm_at(i, i.d), s = xmm_at(i, i.a);
  if (op != Opcode::kFSqrt) return emit_round(b_, op, wide, d, s);
  if (avx_) {
    wide ? a_.vsqrtsd(d, s, s) : a_.vsqrtss(d, s, s);
  } else {
    wide ? a_.sqrtsd(d, s) : a_.sqrtss(d, s);
  }
}

void Emitter::float_sign(const MInst& i) {
  auto op = static_cast<Opcode>(i.sub);
  bool wide = i.width == 8;
  Xmm d = xmm_at(i, i.d);
  copy(d, i, i.a);
  if (op != Opcode::kFCopysign) return emit_sign_op(b_, op, wide, d);
  emit_copysign(b_, wide, d, xmm_at(i, i.b), x86::xmm15);
}

void Emitter::convert(const MInst& i) {
  auto op = static_cast<Opcode>(i.sub);
  auto from = static_cast<Type>(i.from), to = static_cast<Type>(i.to);
  bool from_wide = is_wide(from), to_wide = is_wide(to);
  switch (op) {
    case Opcode::kTruncS:
    case Opcode::kTruncU:
      return emit_trunc(b_, op, to_wide, from_wide, gp_at(i, i.d), xmm_at(i, i.a), x86::r11,
                        x86::xmm15, i.loc);
    case Opcode::kTruncSatS:
    case Opcode::kTruncSatU:
      return emit_trunc_sat(b_, op, to_wide, from_wide, gp_at(i, i.d), xmm_at(i, i.a), x86::r11,
                            x86::xmm15);
    case Opcode::kConvertS:
    case Opcode::kConvertU:
      return emit_convert(b_, op, to_wide, from_wide, xmm_at(i, i.d), gp_at(i, i.a), x86::r11);
    case Opcode::kPromote: a_.cvtss2sd(xmm_at(i, i.d), xmm_at(i, i.a)); return;
    case Opcode::kDemote: a_.cvtsd2ss(xmm_at(i, i.d), xmm_at(i, i.a)); return;
    default: break;
  }
  // A bitcast between general and vector registers.
  if (is_float(to)) {
    Gp s = gp_at(i, i.a);
    to_wide ? a_.movq(xmm_at(i, i.d), s) : a_.movd(xmm_at(i, i.d), s.r32());
  } else {
    Gp d = gp_at(i, i.d);
    to_wide ? a_.movq(d, xmm_at(i, i.a)) : a_.movd(d.r32(), xmm_at(i, i.a));
  }
}

}  // namespace uptier::jit::x64
