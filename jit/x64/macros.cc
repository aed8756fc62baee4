#include "jit/x64/macros.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace uptier::jit {
namespace {

using CC = x86::CondCode;
using Parity = FlagCondition::Parity;

const asmjit::CpuFeatures::X86& features() { return asmjit::CpuInfo::host().features().x86(); }

}  // namespace

Status check_cpu() {
  const auto& f = features();
  if (f.hasSSE4_2() && f.hasPOPCNT() && f.hasSSSE3()) return {};
  return Error{ErrorCode::kUnsupported, "the processor lacks SSE4.2 or POPCNT (x86-64-v2)"};
}

// ---- Conditions -------------------------------------------------------------------------------

FlagCondition negate(FlagCondition c) {
  c.code = x86::negateCond(c.code);
  if (c.parity != Parity::kIgnore) {
    c.parity = c.parity == Parity::kAndClear ? Parity::kOrSet : Parity::kAndClear;
  }
  return c;
}

FlagCondition int_condition(Opcode op) {
  switch (op) {
    case Opcode::kEqz:
    case Opcode::kEq: return {CC::kE};
    case Opcode::kNe: return {CC::kNE};
    case Opcode::kLtS: return {CC::kL};
    case Opcode::kLtU: return {CC::kB};
    case Opcode::kGtS: return {CC::kG};
    case Opcode::kGtU: return {CC::kA};
    case Opcode::kLeS: return {CC::kLE};
    case Opcode::kLeU: return {CC::kBE};
    case Opcode::kGeS: return {CC::kGE};
    default: assert(op == Opcode::kGeU); return {CC::kAE};
  }
}

Opcode swap_comparison(Opcode op) {
  switch (op) {
    case Opcode::kLtS: return Opcode::kGtS;
    case Opcode::kLtU: return Opcode::kGtU;
    case Opcode::kGtS: return Opcode::kLtS;
    case Opcode::kGtU: return Opcode::kLtU;
    case Opcode::kLeS: return Opcode::kGeS;
    case Opcode::kLeU: return Opcode::kGeU;
    case Opcode::kGeS: return Opcode::kLeS;
    case Opcode::kGeU: return Opcode::kLeU;
    default: return op;
  }
}

// "Above" is false for unordered operands, "below" is true. So less-than is tested with its
// operands swapped.
FlagCondition emit_float_compare(CodeBuffer& b, Opcode op, bool wide, const Xmm& left,
                                 const Xmm& right) {
  bool swap = op == Opcode::kFLt || op == Opcode::kFLe;
  Xmm x = swap ? right : left, y = swap ? left : right;
  wide ? b.assembler().ucomisd(x, y) : b.assembler().ucomiss(x, y);
  switch (op) {
    case Opcode::kFEq: return {CC::kE, Parity::kAndClear};
    case Opcode::kFNe: return {CC::kNE, Parity::kOrSet};
    case Opcode::kFLt:
    case Opcode::kFGt: return {CC::kA};
    default: return {CC::kAE};
  }
}

void emit_jump_if(CodeBuffer& b, FlagCondition c, const Label& target) {
  Assembler& a = b.assembler();
  if (c.parity == Parity::kAndClear) {
    Label skip = b.new_label();
    a.short_().jp(skip);
    a.j(c.code, target);
    b.bind(skip);
    return;
  }
  a.j(c.code, target);
  if (c.parity == Parity::kOrSet) a.jp(target);
}

void emit_set(CodeBuffer& b, FlagCondition c, const Gp& dst, const Gp& scratch) {
  Assembler& a = b.assembler();
  a.set(c.code, dst.r8());
  if (c.parity != Parity::kIgnore) {
    bool conjunction = c.parity == Parity::kAndClear;
    conjunction ? a.setnp(scratch.r8()) : a.setp(scratch.r8());
    conjunction ? a.and_(dst.r8(), scratch.r8()) : a.or_(dst.r8(), scratch.r8());
  }
  a.movzx(dst.r32(), dst.r8());
}

void emit_move_if(CodeBuffer& b, FlagCondition c, const Gp& dst, const Gp& src) {
  Assembler& a = b.assembler();
  if (c.parity == Parity::kAndClear) {
    Label skip = b.new_label();
    a.short_().jp(skip);
    a.cmov(c.code, dst.r64(), src.r64());
    b.bind(skip);
    return;
  }
  a.cmov(c.code, dst.r64(), src.r64());
  if (c.parity == Parity::kOrSet) a.cmovp(dst.r64(), src.r64());
}

// ---- Constants and addresses ------------------------------------------------------------------

void emit_constant(CodeBuffer& b, const Gp& dst, uint64_t bits) {
  Assembler& a = b.assembler();
  if (bits <= UINT32_MAX) {
    a.mov(dst.r32(), imm(static_cast<uint32_t>(bits)));
  } else {
    a.mov(dst.r64(), imm(static_cast<int64_t>(bits)));  // 7 bytes if it is a negative int32
  }
}

void emit_constant(CodeBuffer& b, bool wide, const Xmm& dst, uint64_t bits) {
  Assembler& a = b.assembler();
  if (bits == 0) {
    a.xorps(dst, dst);
  } else if (b.hides_float(bits, wide)) {
    uint64_t hidden = bits ^ b.float_key(wide);
    wide ? a.movsd(dst, b.constant64(hidden))
         : a.movss(dst, b.constant32(static_cast<uint32_t>(hidden)));
    a.xorps(dst, b.float_key_operand(wide));
  } else if (wide) {
    a.movsd(dst, b.constant64(bits));
  } else {
    a.movss(dst, b.constant32(static_cast<uint32_t>(bits)));
  }
}

void emit_zero_extend(CodeBuffer& b, const Gp& dst, const Gp& src) {
  b.assembler().mov(dst.r32(), src.r32());
}

Mem emit_address(CodeBuffer& b, const Gp& base, uint32_t offset, const Gp& scratch) {
  if (offset <= INT32_MAX) return x86::ptr(base.r64(), static_cast<int32_t>(offset));
  emit_constant(b, scratch, offset);
  return x86::ptr(base.r64(), scratch.r64());
}

Mem emit_address(CodeBuffer& b, const Gp& base, const Gp& index, uint32_t offset,
                 const Gp& scratch) {
  if (offset <= INT32_MAX) {
    return x86::ptr(base.r64(), index.r64(), 0, static_cast<int32_t>(offset));
  }
  emit_constant(b, scratch, offset);
  b.assembler().add(scratch.r64(), index.r64());
  return x86::ptr(base.r64(), scratch.r64());
}

namespace {

Mem sized(Mem m, uint32_t bytes) {
  m.setSize(bytes);
  return m;
}

}  // namespace

void emit_load(CodeBuffer& b, Opcode op, Type t, const Gp& dst, const Mem& at) {
  Assembler& a = b.assembler();
  Gp full = gp(dst, is_wide(t));
  switch (op) {
    case Opcode::kLoad: a.mov(full, sized(at, full.size())); return;
    case Opcode::kLoad8S: a.movsx(full, sized(at, 1)); return;
    case Opcode::kLoad8U: a.movzx(dst.r32(), sized(at, 1)); return;
    case Opcode::kLoad16S: a.movsx(full, sized(at, 2)); return;
    case Opcode::kLoad16U: a.movzx(dst.r32(), sized(at, 2)); return;
    case Opcode::kLoad32S: a.movsxd(dst.r64(), sized(at, 4)); return;
    default:
      assert(op == Opcode::kLoad32U);
      a.mov(dst.r32(), sized(at, 4));
      return;
  }
}

void emit_store(CodeBuffer& b, Opcode op, Type t, const Mem& at, const Gp& src) {
  Assembler& a = b.assembler();
  Gp full = gp(src, is_wide(t));
  switch (op) {
    case Opcode::kStore: a.mov(sized(at, full.size()), full); return;
    case Opcode::kStore8: a.mov(sized(at, 1), src.r8()); return;
    case Opcode::kStore16: a.mov(sized(at, 2), src.r16()); return;
    default:
      assert(op == Opcode::kStore32);
      a.mov(sized(at, 4), src.r32());
      return;
  }
}

void emit_load(CodeBuffer& b, Type t, const Xmm& dst, const Mem& at) {
  Assembler& a = b.assembler();
  t == Type::kF64 ? a.movsd(dst, sized(at, 8)) : a.movss(dst, sized(at, 4));
}

void emit_store(CodeBuffer& b, Type t, const Mem& at, const Xmm& src) {
  Assembler& a = b.assembler();
  t == Type::kF64 ? a.movsd(sized(at, 8), src) : a.movss(sized(at, 4), src);
}

namespace {

// REX, opcode, ModRM, displacement of one byte or four.
void emit_frame_move(CodeBuffer& b, uint8_t opcode, const Gp& reg, int32_t at, bool wide) {
  uint8_t bytes[3 + sizeof at];
  uint8_t* end = bytes;
  uint32_t rex = (wide ? 8u : 0u) | reg.id() >> 3 << 2;
  if (rex != 0) *end++ = static_cast<uint8_t>(0x40 | rex);
  *end++ = opcode;
  bool near = at == static_cast<int8_t>(at);
  *end++ = static_cast<uint8_t>((near ? 0x40u : 0x80u) | (reg.id() & 7) << 3 | x86::Gp::kIdBp);
  std::memcpy(end, &at, sizeof at);
  end += near ? 1 : sizeof at;
  b.assembler().embed(bytes, static_cast<size_t>(end - bytes));
}

}  // namespace

void emit_frame_load(CodeBuffer& b, const Gp& dst, int32_t at, bool wide) {
  emit_frame_move(b, 0x8b, dst, at, wide);
}

void emit_frame_store(CodeBuffer& b, int32_t at, const Gp& src, bool wide) {
  emit_frame_move(b, 0x89, src, at, wide);
}

// ---- Integers ---------------------------------------------------------------------------------

Divisor Divisor::of_constant(uint64_t bits, bool wide) {
  if (!wide) bits = static_cast<uint32_t>(bits);
  return {bits == 0, bits == (wide ? UINT64_MAX : UINT32_MAX)};
}

void emit_division(CodeBuffer& b, Opcode op, bool wide, const Gp& divisor, Divisor known,
                   Origin loc) {
  Assembler& a = b.assembler();
  Gp d = gp(divisor, wide), ax = gp(x86::rax, wide);
  bool is_signed = op == Opcode::kDivS || op == Opcode::kRemS;
  Label done = b.new_label();
  if (is_signed && known.may_be_minus_one) {
    Label divide = b.new_label();
    a.cmp(d, imm(-1));
    a.short_().jne(divide);
    if (op == Opcode::kDivS) {
      a.neg(ax);  // overflows only for INT_MIN
      a.jo(b.trap_label(TrapCode::kIntegerOverflow, loc));
    } else {
      a.xor_(x86::edx, x86::edx);
    }
    a.short_().jmp(done);
    b.bind(divide);
  }
  if (!is_signed) {
    a.xor_(x86::edx, x86::edx);
  } else if (wide) {
    a.cqo();
  } else {
    a.cdq();
  }
  if (known.may_be_zero) b.trap_row(TrapCode::kDivideByZero, loc);
  is_signed ? a.idiv(d) : a.div(d);
  b.bind(done);
}

void emit_bit_count(CodeBuffer& b, Opcode op, bool wide, const Gp& dst, const Gp& src,
                    const Gp& scratch) {
  Assembler& a = b.assembler();
  Gp d = gp(dst, wide), s = gp(src, wide), t = gp(scratch, wide);
  int bits = wide ? 64 : 32;
  if (op == Opcode::kPopcnt) {
    a.popcnt(d, s);
  } else if (op == Opcode::kClz && features().hasLZCNT()) {
    a.lzcnt(d, s);
  } else if (op == Opcode::kCtz && features().hasBMI()) {
    a.tzcnt(d, s);
  } else if (op == Opcode::kCtz) {
    a.mov(scratch.r32(), imm(bits));
    a.bsf(d, s);
    a.cmovz(d, t);
  } else {
    a.mov(scratch.r32(), imm(2 * bits - 1));  // the xor below turns it into `bits`
    a.bsr(d, s);
    a.cmovz(d, t);
    a.xor_(d, imm(bits - 1));
  }
}

// ---- Floats -----------------------------------------------------------------------------------

void emit_float_min_max(CodeBuffer& b, Opcode op, bool wide, const Xmm& dst, const Xmm& src) {
  Assembler& a = b.assembler();
  bool min = op == Opcode::kFMin;
  Label nan = b.new_label(), differ = b.new_label(), done = b.new_label();
  wide ? a.ucomisd(dst, src) : a.ucomiss(dst, src);
  a.short_().jp(nan);
  a.short_().jne(differ);
  min ? a.orps(dst, src) : a.andps(dst, src);  // equal: only the signs of zeros can differ
  a.short_().jmp(done);
  b.bind(nan);
  wide ? a.addsd(dst, src) : a.addss(dst, src);
  a.short_().jmp(done);
  b.bind(differ);
  if (wide) {
    min ? a.minsd(dst, src) : a.maxsd(dst, src);
  } else {
    min ? a.minss(dst, src) : a.maxss(dst, src);
  }
  b.bind(done);
}

namespace {

// A mask of all bits but the sign (`sign` false), or of the sign alone, in every lane.
Mem mask(CodeBuffer& b, bool wide, bool sign) {
  uint64_t m = wide ? uint64_t{1} << 63 : 0x8000000080000000;
  if (!sign) m = ~m;
  return b.constant128(m, m);
}

}  // namespace

void emit_copysign(CodeBuffer& b, bool wide, const Xmm& dst, const Xmm& sign, const Xmm& scratch) {
  Assembler& a = b.assembler();
  a.movaps(scratch, sign);
  a.andps(scratch, mask(b, wide, true));
  a.andps(dst, mask(b, wide, false));
  a.orps(dst, scratch);
}

void emit_sign_op(CodeBuffer& b, Opcode op, bool wide, const Xmm& dst) {
  Assembler& a = b.assembler();
  bool abs = op == Opcode::kFAbs;
  abs ? a.andps(dst, mask(b, wide, false)) : a.xorps(dst, mask(b, wide, true));
}

void emit_round(CodeBuffer& b, Opcode op, bool wide, const Xmm& dst, const Xmm& src) {
  uint8_t mode = 0;  // to nearest, ties to even
  if (op == Opcode::kFFloor) mode = 1;
  if (op == Opcode::kFCeil) mode = 2;
  if (op == Opcode::kFTrunc) mode = 3;
  mode |= 8;  // no precision exception
  Assembler& a = b.assembler();
  wide ? a.roundsd(dst, src, imm(mode)) : a.roundss(dst, src, imm(mode));
}

// ---- Conversions ------------------------------------------------------------------------------

namespace {

// A conversion of a float to an integer by a 64-bit cvttsx2si, and the checks after it. The
// instruction returns INT64_MIN for anything that does not fit 64 bits, NaNs included.
struct Truncation {
  CodeBuffer& b;
  Assembler& a;
  bool is_signed, to_wide, from_wide;
  Gp dst, scratch;
  Xmm src, xscratch;

  void convert(const Gp& to, const Xmm& from) {
    from_wide ? a.cvttsd2si(to, from) : a.cvttss2si(to, from);
  }
  void compare(const Xmm& x, const Xmm& y) { from_wide ? a.ucomisd(x, y) : a.ucomiss(x, y); }

  // Converts, and jumps to `done` unless the result needs further checks.
  void fast(const Label& done) {
    convert(dst.r64(), src);
    if (!to_wide) {
      is_signed ? a.movsxd(scratch.r64(), dst.r32()) : a.mov(scratch.r32(), dst.r32());
      a.cmp(scratch.r64(), dst.r64());
      a.je(done);
    } else if (is_signed) {
      a.cmp(dst.r64(), imm(1));  // overflows only for INT64_MIN
      a.jno(done);
    } else {
      a.test(dst.r64(), dst.r64());
      a.jns(done);
    }
  }

  // dst = src - 2^63, converted: the low 63 bits if src is in [2^63, 2^64), else negative.
  void convert_upper_half() {
    a.movaps(xscratch, src);
    if (from_wide) {
      a.subsd(xscratch, b.constant64(std::bit_cast<uint64_t>(0x1p63)));
    } else {
      a.subss(xscratch, b.constant32(std::bit_cast<uint32_t>(0x1p63f)));
    }
    convert(dst.r64(), xscratch);
    a.test(dst.r64(), dst.r64());
  }
};

}  // namespace

void emit_trunc(CodeBuffer& b, Opcode op, bool to_wide, bool from_wide, const Gp& dst,
                const Xmm& src, const Gp& scratch, const Xmm& xscratch, Origin loc) {
  Assembler& a = b.assembler();
  Truncation t{b, a, op == Opcode::kTruncS, to_wide, from_wide, dst, scratch, src, xscratch};
  Label overflow = b.trap_label(TrapCode::kIntegerOverflow, loc);
  Label done = b.new_label();
  t.fast(done);
  t.compare(src, src);
  a.jp(b.trap_label(TrapCode::kInvalidConversion, loc));
  if (!to_wide) {
    a.jmp(overflow);
  } else if (t.is_signed) {
    // INT64_MIN is correct for -2^63 itself, and no other float truncates to it.
    if (from_wide) {
      a.ucomisd(src, b.constant64(std::bit_cast<uint64_t>(-0x1p63)));
    } else {
      a.ucomiss(src, b.constant32(std::bit_cast<uint32_t>(-0x1p63f)));
    }
    a.jne(overflow);
  } else {
    t.convert_upper_half();
    a.js(overflow);
    a.btc(dst.r64(), imm(63));
  }
  b.bind(done);
  if (!to_wide) emit_zero_extend(b, dst, dst);
}

void emit_trunc_sat(CodeBuffer& b, Opcode op, bool to_wide, bool from_wide, const Gp& dst,
                    const Xmm& src, const Gp& scratch, const Xmm& xscratch) {
  Assembler& a = b.assembler();
  Truncation t{b, a, op == Opcode::kTruncSatS, to_wide, from_wide, dst, scratch, src, xscratch};
  Label done = b.new_label(), positive = b.new_label();
  t.fast(done);
  // A NaN becomes 0, and so does a negative source if the result is unsigned.
  a.xorps(xscratch, xscratch);
  t.compare(src, xscratch);
  a.mov(dst.r32(), imm(0));
  a.jp(done);
  a.short_().ja(positive);
  if (t.is_signed) emit_constant(b, dst, to_wide ? uint64_t{1} << 63 : uint64_t{1} << 31);
  a.short_().jmp(done);
  b.bind(positive);
  if (to_wide && !t.is_signed) {
    Label fits = b.new_label();
    t.convert_upper_half();
    a.short_().jns(fits);
    a.mov(dst.r64(), imm(-1));
    a.short_().jmp(done);
    b.bind(fits);
    a.btc(dst.r64(), imm(63));
  } else {
    uint64_t max = to_wide ? UINT64_MAX : UINT32_MAX;
    emit_constant(b, dst, t.is_signed ? max >> 1 : max);
  }
  b.bind(done);
  if (!to_wide) emit_zero_extend(b, dst, dst);
}

void emit_convert(CodeBuffer& b, Opcode op, bool to_wide, bool from_wide, const Xmm& dst,
                  const Gp& src, const Gp& scratch) {
  Assembler& a = b.assembler();
  a.xorps(dst, dst);  // the conversion writes the low lane only and would wait for the rest
  auto convert = [&](const Gp& from) { to_wide ? a.cvtsi2sd(dst, from) : a.cvtsi2ss(dst, from); };
  if (op == Opcode::kConvertS) return convert(gp(src, from_wide));
  if (!from_wide) {
    emit_zero_extend(b, scratch, src);
    return convert(scratch.r64());
  }
  // The upper half of the range: halve, keeping the lost bit so that rounding sees it, convert, and
  // double.
  Label large = b.new_label(), even = b.new_label(), done = b.new_label();
  a.test(src.r64(), src.r64());
  a.short_().js(large);
  convert(src.r64());
  a.short_().jmp(done);
  b.bind(large);
  a.mov(scratch.r64(), src.r64());
  a.shr(scratch.r64(), imm(1));
  a.short_().jnc(even);
  a.or_(scratch.r64(), imm(1));
  b.bind(even);
  convert(scratch.r64());
  to_wide ? a.addsd(dst, dst) : a.addss(dst, dst);
  b.bind(done);
}

void emit_bulk(CodeBuffer& b, Opcode op, uint32_t width) {
  Assembler& a = b.assembler();
  Mem to = x86::ptr(x86::rdi), from = x86::ptr(x86::rsi);
  to.setSize(width);
  from.setSize(width);
  if (op == Opcode::kCopy) {
    a.rep().movs(to, from);
  } else {
    Gp value = width == 8   ? Gp(x86::rax)
               : width == 4 ? Gp(x86::eax)
               : width == 2 ? Gp(x86::ax)
                            : Gp(x86::al);
    a.rep().stos(to, value);
  }
}

}  // namespace uptier::jit
