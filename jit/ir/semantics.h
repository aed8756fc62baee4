// semantics.h: the results of the operations of the opcode table, as pure functions on bits.
//
// A value is its bits, zero-extended to 64: an i32 or f32 never has anything above bit 31. The
// interpreter runs on these functions and the optimizer folds constants with them, so the two
// cannot disagree. The rules are WebAssembly's:
//
//   shift counts are taken modulo the width; integer arithmetic wraps
//   division by zero and INT_MIN / -1 trap; INT_MIN % -1 is 0
//   a float operation with a NaN operand gives a quiet NaN, whose sign and payload are unspecified;
//   fabs, fneg, fcopysign, select, bitcast, loads and stores move bits and keep every NaN
//   fmin(-0, +0) is -0 and fmax is +0, in any order of operands
//
//   Thread: any. Errors: none; a trap is a result. The caller's rounding mode must be to-nearest.
#pragma once

#include <cstdint>
#include <span>

#include "uptier/ids.h"
#include "uptier/opcodes.h"

namespace uptier::jit {

// A result, or the trap that happens instead of it.
struct Evaluation {
  uint64_t bits = 0;
  TrapCode trap = TrapCode::kNone;

  friend bool operator==(const Evaluation&, const Evaluation&) = default;
};

// Returns whether an operation's result depends only on its operands, so that `evaluate` supports
// it: unary, binary, compare, test, convert and select.
bool evaluates(Opcode op);

// Computes an operation for which `evaluates` holds.
//
//   type      the controlling type
//   source    the operand's type for conversions; ignored otherwise
//   operands  bits, as many as the shape has
//
// An instruction that the verifier refuses evaluates to trap unreachable.
Evaluation evaluate(Opcode op, Type type, Type source, std::span<const uint64_t> operands);

// Returns the mask of the types that a conversion to `to` accepts; 0 when there is none.
uint8_t conversion_sources(Opcode op, Type to);

// Returns the TypeMask bit of a type.
constexpr uint8_t mask_of(Type t) { return static_cast<uint8_t>(1u << static_cast<unsigned>(t)); }

// Returns the bytes that a load or store of the type moves: 1, 2, 4 or 8.
unsigned access_size(Opcode op, Type type);

// Extends the bits that a load read (`raw`, zero-extended from its access size) to its result.
uint64_t extend_loaded(Opcode op, Type type, uint64_t raw);

// Clears the bits above the width of the type.
constexpr uint64_t clip(Type t, uint64_t bits) {
  return is_wide(t) ? bits : static_cast<uint32_t>(bits);
}

}  // namespace uptier::jit
