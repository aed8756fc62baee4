#include "jit/ir/semantics.h"

#include <bit>
#include <cmath>
#include <type_traits>

namespace uptier::jit {
namespace {

constexpr Evaluation kBroken{0, TrapCode::kUnreachable};

Evaluation trap(TrapCode code) { return {0, code}; }

// ---- Integers -------------------------------------------------------------------------------

// U is the unsigned type of that width.
template <typename U>
struct Int {
  using S = std::make_signed_t<U>;
  static constexpr unsigned kBits = 8 * sizeof(U);
  static constexpr S kMin = static_cast<S>(U{1} << (kBits - 1));

  static Evaluation value(U v) { return {v, TrapCode::kNone}; }
  static Evaluation truth(bool v) { return {v, TrapCode::kNone}; }

  static Evaluation divide(Opcode op, U a, U b) {
    if (b == 0) return trap(TrapCode::kDivideByZero);
    S sa = static_cast<S>(a), sb = static_cast<S>(b);
    bool overflows = sa == kMin && sb == -1;
    switch (op) {
      case Opcode::kDivS:
        return overflows ? trap(TrapCode::kIntegerOverflow) : value(static_cast<U>(sa / sb));
      case Opcode::kRemS: return value(overflows ? U{0} : static_cast<U>(sa % sb));
      case Opcode::kDivU: return value(a / b);
      default: return value(a % b);
    }
  }

  static bool overflow(Opcode op, U a, U b, U* result) {
    S sa = static_cast<S>(a), sb = static_cast<S>(b), out;
    bool over;
    switch (op) {
      case Opcode::kAddOverflows:
      case Opcode::kAddTrap: over = __builtin_add_overflow(sa, sb, &out); break;
      case Opcode::kSubOverflows:
      case Opcode::kSubTrap: over = __builtin_sub_overflow(sa, sb, &out); break;
      default: over = __builtin_mul_overflow(sa, sb, &out); break;
    }
    *result = static_cast<U>(out);
    return over;
  }

  static Evaluation checked(Opcode op, U a, U b) {
    U out;
    return overflow(op, a, b, &out) ? trap(TrapCode::kIntegerOverflow) : value(out);
  }

  static Evaluation binary(Opcode op, U a, U b) {
    unsigned shift = static_cast<unsigned>(b % kBits);
    switch (op) {
      case Opcode::kAdd: return value(a + b);
      case Opcode::kSub: return value(a - b);
      case Opcode::kMul: return value(a * b);
      case Opcode::kMulHighS:
        return value(
            static_cast<U>(static_cast<__int128>(static_cast<S>(a)) * static_cast<S>(b) >> kBits));
      case Opcode::kMulHighU:
        return value(static_cast<U>(static_cast<unsigned __int128>(a) * b >> kBits));
      case Opcode::kDivS:
      case Opcode::kDivU:
      case Opcode::kRemS:
      case Opcode::kRemU: return divide(op, a, b);
      case Opcode::kAnd: return value(a & b);
      case Opcode::kOr: return value(a | b);
      case Opcode::kXor: return value(a ^ b);
      case Opcode::kShl: return value(static_cast<U>(a << shift));
      case Opcode::kShrS: return value(static_cast<U>(static_cast<S>(a) >> shift));
      case Opcode::kShrU: return value(a >> shift);
      case Opcode::kRotl: return value(std::rotl(a, static_cast<int>(shift)));
      case Opcode::kRotr: return value(std::rotr(a, static_cast<int>(shift)));
      case Opcode::kAddTrap:
      case Opcode::kSubTrap:
      case Opcode::kMulTrap: return checked(op, a, b);
      default: return compare(op, a, b);
    }
  }

  static Evaluation compare(Opcode op, U a, U b) {
    S sa = static_cast<S>(a), sb = static_cast<S>(b);
    U ignored;
    switch (op) {
      case Opcode::kAddOverflows:
      case Opcode::kSubOverflows:
      case Opcode::kMulOverflows: return truth(overflow(op, a, b, &ignored));
      case Opcode::kEq: return truth(a == b);
      case Opcode::kNe: return truth(a != b);
      case Opcode::kLtS: return truth(sa < sb);
      case Opcode::kLtU: return truth(a < b);
      case Opcode::kGtS: return truth(sa > sb);
      case Opcode::kGtU: return truth(a > b);
      case Opcode::kLeS: return truth(sa <= sb);
      case Opcode::kLeU: return truth(a <= b);
      case Opcode::kGeS: return truth(sa >= sb);
      case Opcode::kGeU: return truth(a >= b);
      default: return kBroken;
    }
  }

  static Evaluation unary(Opcode op, U a) {
    switch (op) {
      case Opcode::kClz: return value(static_cast<U>(std::countl_zero(a)));
      case Opcode::kCtz: return value(static_cast<U>(std::countr_zero(a)));
      case Opcode::kPopcnt: return value(static_cast<U>(std::popcount(a)));
      case Opcode::kSext8: return value(static_cast<U>(static_cast<S>(static_cast<int8_t>(a))));
      case Opcode::kSext16: return value(static_cast<U>(static_cast<S>(static_cast<int16_t>(a))));
      case Opcode::kSext32: return value(static_cast<U>(static_cast<S>(static_cast<int32_t>(a))));
      case Opcode::kEqz: return truth(a == 0);
      default: return kBroken;
    }
  }
};

// ---- Floats ---------------------------------------------------------------------------------

// F is float or double, U the unsigned type of the same width.
template <typename F, typename U>
struct Float {
  static constexpr U kSign = U{1} << (8 * sizeof(U) - 1);

  static F of(uint64_t bits) { return std::bit_cast<F>(static_cast<U>(bits)); }
  static Evaluation value(F v) { return {std::bit_cast<U>(v), TrapCode::kNone}; }
  static Evaluation raw(U v) { return {v, TrapCode::kNone}; }
  static Evaluation truth(bool v) { return {v, TrapCode::kNone}; }

  // Equal operands may be zeros of different sign: -0 is the smaller one.
  static F min(F a, F b) {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
  }
  static F max(F a, F b) {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    if (a == b) return std::signbit(a) ? b : a;
    return a > b ? a : b;
  }

  static Evaluation binary(Opcode op, uint64_t x, uint64_t y) {
    F a = of(x), b = of(y);
    U ua = static_cast<U>(x), ub = static_cast<U>(y);
    switch (op) {
      case Opcode::kFAdd: return value(a + b);
      case Opcode::kFSub: return value(a - b);
      case Opcode::kFMul: return value(a * b);
      case Opcode::kFDiv: return value(a / b);
      case Opcode::kFMin: return value(min(a, b));
      case Opcode::kFMax: return value(max(a, b));
      case Opcode::kFCopysign: return raw((ua & ~kSign) | (ub & kSign));
      case Opcode::kFEq: return truth(a == b);
      case Opcode::kFNe: return truth(a != b);
      case Opcode::kFLt: return truth(a < b);
      case Opcode::kFGt: return truth(a > b);
      case Opcode::kFLe: return truth(a <= b);
      case Opcode::kFGe: return truth(a >= b);
      default: return kBroken;
    }
  }

  static Evaluation unary(Opcode op, uint64_t x) {
    F a = of(x);
    U ua = static_cast<U>(x);
    if (op == Opcode::kFAbs) return raw(ua & ~kSign);
    if (op == Opcode::kFNeg) return raw(ua ^ kSign);
    if (std::isnan(a)) return value(a + a);  // quiet
    switch (op) {
      case Opcode::kFSqrt: return value(std::sqrt(a));
      case Opcode::kFCeil: return value(std::ceil(a));
      case Opcode::kFFloor: return value(std::floor(a));
      case Opcode::kFTrunc: return value(std::trunc(a));
      case Opcode::kFNearest: return value(std::nearbyint(a));
      default: return kBroken;
    }
  }
};

using F32 = Float<float, uint32_t>;
using F64 = Float<double, uint64_t>;

// ---- Conversions ----------------------------------------------------------------------------

// The whole part of a float of either width is exact in a double, and so are the bounds.
//   signed n bits:   -2^(n-1) <= t < 2^(n-1)       unsigned: 0 <= t < 2^n     (-0 counts as 0)
struct TruncRange {
  double low, high;  // low <= t < high
};

TruncRange trunc_range(bool is_signed, Type to) {
  double whole = to == Type::kI32 ? 0x1p32 : 0x1p64;
  return is_signed ? TruncRange{-whole / 2, whole / 2} : TruncRange{0, whole};
}

uint64_t whole_to_int(double t, bool is_signed, Type to) {
  uint64_t bits =
      is_signed ? static_cast<uint64_t>(static_cast<int64_t>(t)) : static_cast<uint64_t>(t);
  return clip(to, bits);
}

uint64_t saturated(double v, bool is_signed, Type to) {
  if (std::isnan(v)) return 0;
  uint64_t ones = clip(to, ~uint64_t{0});
  if (v < 0) return is_signed ? (ones >> 1) + 1 : 0;
  return is_signed ? ones >> 1 : ones;
}

Evaluation truncate(Opcode op, Type to, double v) {
  bool is_signed = op == Opcode::kTruncS || op == Opcode::kTruncSatS;
  bool saturates = op == Opcode::kTruncSatS || op == Opcode::kTruncSatU;
  TruncRange range = trunc_range(is_signed, to);
  double t = std::trunc(v);
  if (t >= range.low && t < range.high) return {whole_to_int(t, is_signed, to), TrapCode::kNone};
  if (saturates) return {saturated(v, is_signed, to), TrapCode::kNone};
  return trap(std::isnan(v) ? TrapCode::kInvalidConversion : TrapCode::kIntegerOverflow);
}

template <typename F, typename U>
Evaluation int_to_float(Opcode op, Type from, uint64_t a) {
  if (op == Opcode::kConvertU) return Float<F, U>::value(static_cast<F>(a));
  int64_t wide = from == Type::kI32 ? static_cast<int32_t>(a) : static_cast<int64_t>(a);
  return Float<F, U>::value(static_cast<F>(wide));
}

Evaluation convert(Opcode op, Type to, Type from, uint64_t a) {
  switch (op) {
    case Opcode::kWrap: return {static_cast<uint32_t>(a), TrapCode::kNone};
    case Opcode::kExtendS:
      return {static_cast<uint64_t>(int64_t{static_cast<int32_t>(a)}), TrapCode::kNone};
    case Opcode::kExtendU:
    case Opcode::kBitcast: return {a, TrapCode::kNone};
    case Opcode::kTruncS:
    case Opcode::kTruncU:
    case Opcode::kTruncSatS:
    case Opcode::kTruncSatU:
      return truncate(op, to, from == Type::kF32 ? double{F32::of(a)} : F64::of(a));
    case Opcode::kConvertS:
    case Opcode::kConvertU:
      return to == Type::kF32 ? int_to_float<float, uint32_t>(op, from, a)
                              : int_to_float<double, uint64_t>(op, from, a);
    case Opcode::kPromote: return F64::value(double{F32::of(a)});
    case Opcode::kDemote: return F32::value(static_cast<float>(F64::of(a)));
    default: return kBroken;
  }
}

Evaluation unary(Opcode op, Type type, uint64_t a) {
  switch (type) {
    case Type::kI32: return Int<uint32_t>::unary(op, static_cast<uint32_t>(a));
    case Type::kI64:
    case Type::kRef: return Int<uint64_t>::unary(op, a);
    case Type::kF32: return F32::unary(op, a);
    case Type::kF64: return F64::unary(op, a);
    default: return kBroken;
  }
}

Evaluation binary(Opcode op, Type type, uint64_t a, uint64_t b) {
  switch (type) {
    case Type::kI32:
      return Int<uint32_t>::binary(op, static_cast<uint32_t>(a), static_cast<uint32_t>(b));
    case Type::kI64:
    case Type::kRef: return Int<uint64_t>::binary(op, a, b);
    case Type::kF32: return F32::binary(op, a, b);
    case Type::kF64: return F64::binary(op, a, b);
    default: return kBroken;
  }
}

}  // namespace

bool evaluates(Opcode op) {
  switch (info(op).shape) {
    case Shape::kUnary:
    case Shape::kBinary:
    case Shape::kCompare:
    case Shape::kTest:
    case Shape::kConvert:
    case Shape::kSelect: return true;
    default: return false;
  }
}

Evaluation evaluate(Opcode op, Type type, Type source, std::span<const uint64_t> operands) {
  switch (info(op).shape) {
    case Shape::kUnary:
    case Shape::kTest: return unary(op, type, operands[0]);
    case Shape::kBinary:
    case Shape::kCompare: return binary(op, type, operands[0], operands[1]);
    case Shape::kConvert: return convert(op, type, source, operands[0]);
    case Shape::kSelect:
      return {static_cast<uint32_t>(operands[0]) != 0 ? operands[1] : operands[2], TrapCode::kNone};
    default: return kBroken;
  }
}

uint8_t conversion_sources(Opcode op, Type to) {
  if (info(op).shape != Shape::kConvert || !(info(op).types & mask_of(to))) return 0;
  switch (op) {
    case Opcode::kWrap: return kMaskI64;
    case Opcode::kExtendS:
    case Opcode::kExtendU: return kMaskI32;
    case Opcode::kTruncS:
    case Opcode::kTruncU:
    case Opcode::kTruncSatS:
    case Opcode::kTruncSatU: return kMaskFloat;
    case Opcode::kConvertS:
    case Opcode::kConvertU: return kMaskInt;
    case Opcode::kPromote: return kMaskF32;
    case Opcode::kDemote: return kMaskF64;
    case Opcode::kBitcast:
      return is_wide(to) ? kMaskI64 | kMaskF64 | kMaskRef : kMaskI32 | kMaskF32;
    default: return 0;
  }
}

unsigned access_size(Opcode op, Type type) {
  switch (op) {
    case Opcode::kLoad8S:
    case Opcode::kLoad8U:
    case Opcode::kStore8: return 1;
    case Opcode::kLoad16S:
    case Opcode::kLoad16U:
    case Opcode::kStore16: return 2;
    case Opcode::kLoad32S:
    case Opcode::kLoad32U:
    case Opcode::kStore32: return 4;
    default: return is_wide(type) ? 8 : 4;
  }
}

uint64_t extend_loaded(Opcode op, Type type, uint64_t raw) {
  switch (op) {
    case Opcode::kLoad8S: return clip(type, static_cast<uint64_t>(static_cast<int8_t>(raw)));
    case Opcode::kLoad16S: return clip(type, static_cast<uint64_t>(static_cast<int16_t>(raw)));
    case Opcode::kLoad32S: return static_cast<uint64_t>(static_cast<int32_t>(raw));
    default: return raw;
  }
}

}  // namespace uptier::jit
