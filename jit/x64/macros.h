// macros.h: operations that take several instructions, on registers that the caller picks.
//
// Both compilers emit them, so the semantics (WebAssembly's, to the bit) live in one place. Every
// function documents what it clobbers; everything else survives, except the flags. Operands named
// `scratch` must differ from all others. The upper half of an i32 operand is undefined; every i32
// result has a zero upper half.
//
// Needs x86-64-v2 (SSE4.2, POPCNT); check_cpu() tests for it. LZCNT and TZCNT are used if they
// exist.
#pragma once

#include <cstdint>

#include "jit/x64/code_buffer.h"
#include "uptier/opcodes.h"
#include "uptier/result.h"

namespace uptier::jit {

// Fails with kUnsupported on a processor below x86-64-v2. Call it before anything is compiled.
Status check_cpu();

// ---- Conditions -------------------------------------------------------------------------------

// The flags to test after a comparison. Floats need the parity flag for equality only.
struct FlagCondition {
  enum class Parity : uint8_t { kIgnore, kAndClear, kOrSet };
  x86::CondCode code = x86::CondCode::kNE;
  Parity parity = Parity::kIgnore;
};

FlagCondition negate(FlagCondition c);
// Returns the condition of an integer comparison (kEq .. kGeU) after `cmp a, b`.
FlagCondition int_condition(Opcode op);
// Returns the condition of the comparison with its operands swapped: a < b is b > a.
Opcode swap_comparison(Opcode op);
// Emits ucomiss/ucomisd for a float comparison (kFEq .. kFGe) and returns the condition to test.
FlagCondition emit_float_compare(CodeBuffer& b, Opcode op, bool wide, const Xmm& left,
                                 const Xmm& right);
// Jumps when the condition holds.
void emit_jump_if(CodeBuffer& b, FlagCondition c, const Label& target);
// dst = condition ? 1 : 0. Clobbers `scratch` only for conditions with parity. Keeps the flags.
void emit_set(CodeBuffer& b, FlagCondition c, const Gp& dst, const Gp& scratch);
// dst = condition ? src : dst, 64 bits wide.
void emit_move_if(CodeBuffer& b, FlagCondition c, const Gp& dst, const Gp& src);

// ---- Constants and addresses ------------------------------------------------------------------

// dst = bits, in the shortest form that keeps the flags.
void emit_constant(CodeBuffer& b, const Gp& dst, uint64_t bits);
// dst = bits of an f32 or f64. Keeps the flags. The upper lanes are not 0 for blinded constants.
void emit_constant(CodeBuffer& b, bool wide, const Xmm& dst, uint64_t bits);
// dst (64 bits) = the i32 in src, zero-extended.
void emit_zero_extend(CodeBuffer& b, const Gp& dst, const Gp& src);
// Returns an operand for base + offset. Clobbers `scratch` if the offset exceeds INT32_MAX.
Mem emit_address(CodeBuffer& b, const Gp& base, uint32_t offset, const Gp& scratch);
// Returns an operand for base + index + offset; an i32 index must be zero-extended.
Mem emit_address(CodeBuffer& b, const Gp& base, const Gp& index, uint32_t offset,
                 const Gp& scratch);
// A load or store (kLoad .. kStore32) of an integer or ref of type `t`. `at` needs no size.
void emit_load(CodeBuffer& b, Opcode op, Type t, const Gp& dst, const Mem& at);
void emit_store(CodeBuffer& b, Opcode op, Type t, const Mem& at, const Gp& src);
void emit_load(CodeBuffer& b, Type t, const Xmm& dst, const Mem& at);
void emit_store(CodeBuffer& b, Type t, const Mem& at, const Xmm& src);

// dst = [rbp + at], and back: 8 bytes if `wide`, else 4. Every third instruction of baseline code
// is one of these, so they bypass the assembler's tables; the bytes are the same.
void emit_frame_load(CodeBuffer& b, const Gp& dst, int32_t at, bool wide);
void emit_frame_store(CodeBuffer& b, int32_t at, const Gp& src, bool wide);

// ---- Integers ---------------------------------------------------------------------------------

// The special values that a divisor may have; a constant spares tests.
struct Divisor {
  bool may_be_zero = true;
  bool may_be_minus_one = true;
  static Divisor of_constant(uint64_t bits, bool wide);
};
// kFill, kCopy: rdi is the destination, `rsi` the source or `rax` the value, rcx the number of
// elements of `width` bytes. Clobbers rdi, rsi and rcx. It is a single instruction that a fault
// interrupts after it has stored the elements before the fault, so its trap row is like one in a
// loop.
void emit_bulk(CodeBuffer& b, Opcode op, uint32_t width);

// kDivS, kDivU, kRemS, kRemU: the dividend is in rax; the quotient goes to rax, the remainder to
// rdx. The divisor is kept and must be neither rax nor rdx. Clobbers rax, rdx. Division by zero
// traps through a row at the division, INT_MIN / -1 by an explicit test for integer overflow; the
// remainder of INT_MIN / -1 is 0.
void emit_division(CodeBuffer& b, Opcode op, bool wide, const Gp& divisor, Divisor known,
                   Origin loc);
// kClz, kCtz, kPopcnt. `dst` may be `src`. Clobbers `scratch`.
void emit_bit_count(CodeBuffer& b, Opcode op, bool wide, const Gp& dst, const Gp& src,
                    const Gp& scratch);

// ---- Floats -----------------------------------------------------------------------------------

// kFMin, kFMax: dst = op(dst, src). A NaN in either operand gives a NaN, and -0 < +0. `src` may be
// `dst`.
void emit_float_min_max(CodeBuffer& b, Opcode op, bool wide, const Xmm& dst, const Xmm& src);
// dst = dst with the sign of `sign`, which may be `dst`. Clobbers `scratch`.
void emit_copysign(CodeBuffer& b, bool wide, const Xmm& dst, const Xmm& sign, const Xmm& scratch);
// kFAbs, kFNeg on dst.
void emit_sign_op(CodeBuffer& b, Opcode op, bool wide, const Xmm& dst);
// kFCeil, kFFloor, kFTrunc, kFNearest. `dst` may be `src`.
void emit_round(CodeBuffer& b, Opcode op, bool wide, const Xmm& dst, const Xmm& src);

// ---- Conversions ------------------------------------------------------------------------------

// kTruncS, kTruncU: a NaN traps as an invalid conversion, a value out of range as an integer
// overflow. Keeps `src`; clobbers dst, scratch, xscratch.
void emit_trunc(CodeBuffer& b, Opcode op, bool to_wide, bool from_wide, const Gp& dst,
                const Xmm& src, const Gp& scratch, const Xmm& xscratch, Origin loc);
// kTruncSatS, kTruncSatU: 0 for a NaN, the nearest value if out of range. Same operands.
void emit_trunc_sat(CodeBuffer& b, Opcode op, bool to_wide, bool from_wide, const Gp& dst,
                    const Xmm& src, const Gp& scratch, const Xmm& xscratch);
// kConvertS, kConvertU: dst = src as f32 or f64 (`to_wide`). Keeps `src`; kConvertU clobbers
// scratch.
void emit_convert(CodeBuffer& b, Opcode op, bool to_wide, bool from_wide, const Xmm& dst,
                  const Gp& src, const Gp& scratch);

}  // namespace uptier::jit
