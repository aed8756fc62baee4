// Numeric instructions of FunctionTranslator: one table, as the IR has WebAssembly's semantics.
#include <array>

#include "embed/wasm/build_function.h"

namespace uptier::wasm {
namespace {

struct NumericRow {
  Opcode op;
  Type result;  // of conversions; other results follow from the operands
};

constexpr Type kI32 = Type::kI32;
constexpr Type kI64 = Type::kI64;
constexpr Type kF32 = Type::kF32;
constexpr Type kF64 = Type::kF64;
constexpr Type kSame = Type::kNone;

#define INT_COMPARISONS                                                                           \
  {Opcode::kEqz, kSame}, {Opcode::kEq, kSame}, {Opcode::kNe, kSame}, {Opcode::kLtS, kSame},       \
      {Opcode::kLtU, kSame}, {Opcode::kGtS, kSame}, {Opcode::kGtU, kSame}, {Opcode::kLeS, kSame}, \
      {Opcode::kLeU, kSame}, {Opcode::kGeS, kSame}, {                                             \
    Opcode::kGeU, kSame                                                                           \
  }
#define FLOAT_COMPARISONS                                                                     \
  {Opcode::kFEq, kSame}, {Opcode::kFNe, kSame}, {Opcode::kFLt, kSame}, {Opcode::kFGt, kSame}, \
      {Opcode::kFLe, kSame}, {                                                                \
    Opcode::kFGe, kSame                                                                       \
  }
#define INT_ARITHMETIC                                                                           \
  {Opcode::kClz, kSame}, {Opcode::kCtz, kSame}, {Opcode::kPopcnt, kSame}, {Opcode::kAdd, kSame}, \
      {Opcode::kSub, kSame}, {Opcode::kMul, kSame}, {Opcode::kDivS, kSame},                      \
      {Opcode::kDivU, kSame}, {Opcode::kRemS, kSame}, {Opcode::kRemU, kSame},                    \
      {Opcode::kAnd, kSame}, {Opcode::kOr, kSame}, {Opcode::kXor, kSame}, {Opcode::kShl, kSame}, \
      {Opcode::kShrS, kSame}, {Opcode::kShrU, kSame}, {Opcode::kRotl, kSame}, {                  \
    Opcode::kRotr, kSame                                                                         \
  }
#define FLOAT_ARITHMETIC                                                              \
  {Opcode::kFAbs, kSame}, {Opcode::kFNeg, kSame}, {Opcode::kFCeil, kSame},            \
      {Opcode::kFFloor, kSame}, {Opcode::kFTrunc, kSame}, {Opcode::kFNearest, kSame}, \
      {Opcode::kFSqrt, kSame}, {Opcode::kFAdd, kSame}, {Opcode::kFSub, kSame},        \
      {Opcode::kFMul, kSame}, {Opcode::kFDiv, kSame}, {Opcode::kFMin, kSame},         \
      {Opcode::kFMax, kSame}, {                                                       \
    Opcode::kFCopysign, kSame                                                         \
  }

// By instruction byte, from Op::kFirstNumeric.
constexpr NumericRow kNumeric[] = {
    INT_COMPARISONS,            // i32
    INT_COMPARISONS,            // i64
    FLOAT_COMPARISONS,          // f32
    FLOAT_COMPARISONS,          // f64
    INT_ARITHMETIC,             // i32
    INT_ARITHMETIC,             // i64
    FLOAT_ARITHMETIC,           // f32
    FLOAT_ARITHMETIC,           // f64
    {Opcode::kWrap, kI32},      // i32.wrap_i64
    {Opcode::kTruncS, kI32},    // i32.trunc_f32_s
    {Opcode::kTruncU, kI32},    // i32.trunc_f32_u
    {Opcode::kTruncS, kI32},    // i32.trunc_f64_s
    {Opcode::kTruncU, kI32},    // i32.trunc_f64_u
    {Opcode::kExtendS, kI64},   // i64.extend_i32_s
    {Opcode::kExtendU, kI64},   // i64.extend_i32_u
    {Opcode::kTruncS, kI64},    // i64.trunc_f32_s
    {Opcode::kTruncU, kI64},    // i64.trunc_f32_u
    {Opcode::kTruncS, kI64},    // i64.trunc_f64_s
    {Opcode::kTruncU, kI64},    // i64.trunc_f64_u
    {Opcode::kConvertS, kF32},  // f32.convert_i32_s
    {Opcode::kConvertU, kF32},  // f32.convert_i32_u
    {Opcode::kConvertS, kF32},  // f32.convert_i64_s
    {Opcode::kConvertU, kF32},  // f32.convert_i64_u
    {Opcode::kDemote, kF32},    // f32.demote_f64
    {Opcode::kConvertS, kF64},  // f64.convert_i32_s
    {Opcode::kConvertU, kF64},  // f64.convert_i32_u
    {Opcode::kConvertS, kF64},  // f64.convert_i64_s
    {Opcode::kConvertU, kF64},  // f64.convert_i64_u
    {Opcode::kPromote, kF64},   // f64.promote_f32
    {Opcode::kBitcast, kI32},   // i32.reinterpret_f32
    {Opcode::kBitcast, kI64},   // i64.reinterpret_f64
    {Opcode::kBitcast, kF32},   // f32.reinterpret_i32
    {Opcode::kBitcast, kF64},   // f64.reinterpret_i64
    {Opcode::kSext8, kSame},    // i32.extend8_s
    {Opcode::kSext16, kSame},   // i32.extend16_s
    {Opcode::kSext8, kSame},    // i64.extend8_s
    {Opcode::kSext16, kSame},   // i64.extend16_s
    {Opcode::kSext32, kSame},   // i64.extend32_s
};
static_assert(std::size(kNumeric) ==
              static_cast<size_t>(Op::kLastNumeric) - static_cast<size_t>(Op::kFirstNumeric) + 1);

}  // namespace

void FunctionTranslator::numeric(Op op) {
  if (op == Op::kI32Eqz) {
    Operand& o = stack_.back();
    settle(o);
    o.is_eqz = true;
    return;
  }
  const NumericRow& row =
      kNumeric[static_cast<size_t>(op) - static_cast<size_t>(Op::kFirstNumeric)];
  Value last = pop();
  if (row.result != kSame) return push(b_.convert(row.op, row.result, last));
  Shape shape = info(row.op).shape;
  if (shape == Shape::kUnary || shape == Shape::kTest) return push(b_.unary(row.op, last));
  Value first = pop();
  push(b_.binary(row.op, first, last));
}

// Even ones are signed; i32 before i64, from f32 before from f64.
void FunctionTranslator::saturating(Op op) {
  unsigned n = static_cast<unsigned>(op) - static_cast<unsigned>(Op::kFirstSaturating);
  Opcode opcode = n % 2 == 0 ? Opcode::kTruncSatS : Opcode::kTruncSatU;
  push(b_.convert(opcode, n < 4 ? kI32 : kI64, pop()));
}

void FunctionTranslator::on_select() {
  Condition c = pop_condition();
  Value second = pop();
  Value first = pop();
  if (c.inverted) std::swap(first, second);
  push(b_.select(c.value, first, second));
}

}  // namespace uptier::wasm
