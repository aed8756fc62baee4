// For a divisor d and an N-bit x: floor(x / d) = floor(x * m / 2^(N + s)), with a multiplier m of at most
// N + 1 bits. Products of i32 are computed in i64, those of i64 by mul_high.
#include <bit>

#include "jit/analysis/dominators.h"
#include "jit/ir/semantics.h"
#include "jit/opt/passes.h"
#include "jit/opt/rewriter.h"

namespace uptier::jit {
namespace {

using U128 = unsigned __int128;

struct Magic {
  U128 multiplier;  // up to 2^(N + 1)
  unsigned shift;   // in addition to N
};

// Returns m = ceil(2^(N + s) / d) with s = ceil(log2 d), halved while that keeps it exact. The part
// 2^N of the quotient is added separately, because 2^(64 + 64) would overflow.
Magic unsigned_magic(unsigned bits, uint64_t d) {
  auto s = static_cast<unsigned>(std::bit_width(d - 1));
  U128 one = static_cast<U128>(1) << bits;
  U128 rest = ((static_cast<U128>(1) << s) - d) << bits;
  U128 low = one + rest / d;
  U128 high = one + (rest + (static_cast<U128>(1) << s)) / d;
  while (s > 0 && low / 2 < high / 2) {
    low /= 2;
    high /= 2;
    --s;
  }
  return {high, s};
}

// Returns the multiplier for the magnitude of a signed divisor, with a precision of N - 1 bits, for
// a shift by N - 1 + s.
Magic signed_magic(unsigned bits, uint64_t d) {
  auto s = static_cast<unsigned>(std::bit_width(d - 1));
  return {(static_cast<U128>(1) << (bits - 1 + s)) / d + 1, s};
}

class DivisionReducer {
 public:
  explicit DivisionReducer(Function& f) : f_(f), r_(f) {}

  void run() {
    r_.run(compute_dominators(f_).order, [&](InstId i) { return visit(i); });
  }

 private:
  bool visit(InstId id) {
    const Inst& i = f_.inst(id);
    bool division = i.op == Opcode::kDivU || i.op == Opcode::kRemU || i.op == Opcode::kDivS ||
                    i.op == Opcode::kRemS;
    if (!division) return true;
    auto c = r_.constant_of(f_.args(i)[1]);
    if (!c) return true;
    type_ = i.type;
    bits_ = type_ == Type::kI32 ? 32 : 64;
    uint64_t d = clip(type_, *c), least = uint64_t{1} << (bits_ - 1);
    bool is_signed = i.op == Opcode::kDivS || i.op == Opcode::kRemS;
    bool remainder = i.op == Opcode::kRemU || i.op == Opcode::kRemS;
    // Not reduced: 0, which traps; -1, which may overflow; the least signed and the greatest
    // unsigned number. 1 is left to simplify_arithmetic.
    uint64_t magnitude = is_signed && d > least ? clip(type_, 0 - d) : d;
    if (magnitude < 2 || (is_signed && d == least) || d == clip(type_, ~uint64_t{0})) return true;
    Value x = f_.args(i)[0], divisor = f_.args(i)[1], result = i.result;
    Value same;
    if (remainder && is_signed && std::has_single_bit(magnitude)) {
      same = signed_power_remainder(x, magnitude);
    } else {
      same = is_signed ? signed_quotient(x, magnitude, d > least) : unsigned_quotient(x, d);
      if (remainder) same = binary(Opcode::kSub, x, binary(Opcode::kMul, same, divisor));
    }
    r_.replace(result, same);
    return false;
  }

  // Operations in the type of the division.
  Value binary(Opcode op, Value a, Value b) { return r_.emit(op, type_, {a, b}); }
  Value number(uint64_t n) { return r_.constant(type_, clip(type_, n)); }
  Value shifted(Opcode op, Value a, unsigned count) {
    return count == 0 ? a : binary(op, a, number(count));
  }

  // Returns floor(x * m / 2^(bits_ + shift)), for m < 2^bits_.
  Value high_product(Value x, uint64_t m, unsigned shift) {
    if (type_ == Type::kI64) {
      return shifted(Opcode::kShrU, binary(Opcode::kMulHighU, x, number(m)), shift);
    }
    Value wide = r_.emit(Opcode::kExtendU, Type::kI64, {x});
    Value product = r_.emit(Opcode::kMul, Type::kI64, {wide, r_.constant(Type::kI64, m)});
    Value up = r_.constant(Type::kI64, 32 + shift);
    return r_.emit(Opcode::kWrap, Type::kI32, {r_.emit(Opcode::kShrU, Type::kI64, {product, up})});
  }

  Value unsigned_quotient(Value x, uint64_t d) {
    if (std::has_single_bit(d)) {
      return shifted(Opcode::kShrU, x, static_cast<unsigned>(std::countr_zero(d)));
    }
    Magic m = unsigned_magic(bits_, d);
    auto low = static_cast<uint64_t>(m.multiplier);
    if (m.multiplier >> bits_ == 0) return high_product(x, low, m.shift);
    // A multiplier 2^N + m' has one bit too many: x * m / 2^N = x + t with t = x * m' / 2^N. The
    // sum is computed halved, so that it cannot overflow.
    Value t = high_product(x, clip(type_, low), 0);
    Value half = shifted(Opcode::kShrU, binary(Opcode::kSub, x, t), 1);
    return shifted(Opcode::kShrU, binary(Opcode::kAdd, half, t), m.shift - 1);
  }

  Value signed_quotient(Value x, uint64_t magnitude, bool negative) {
    Value q = std::has_single_bit(magnitude) ? signed_power_quotient(x, magnitude)
                                             : signed_magic_quotient(x, magnitude);
    return negative ? binary(Opcode::kSub, number(0), q) : q;
  }

  // Rounds towards zero: adds d - 1 to a negative x before the shift.
  Value signed_power_quotient(Value x, uint64_t d) {
    return shifted(Opcode::kShrS, biased(x, d), static_cast<unsigned>(std::countr_zero(d)));
  }

  Value signed_power_remainder(Value x, uint64_t d) {
    return binary(Opcode::kSub, x, binary(Opcode::kAnd, biased(x, d), number(0 - d)));
  }

  Value biased(Value x, uint64_t d) {
    auto k = static_cast<unsigned>(std::countr_zero(d));
    Value sign = k == 1 ? x : shifted(Opcode::kShrS, x, bits_ - 1);
    return binary(Opcode::kAdd, x, shifted(Opcode::kShrU, sign, bits_ - k));
  }

  // The multiplier of an i64 is 2^64 + a negative number. The 2^64 part is added separately.
  Value signed_magic_quotient(Value x, uint64_t d) {
    Magic m = signed_magic(bits_, d);
    auto low = static_cast<uint64_t>(m.multiplier);
    Value floor;
    if (type_ == Type::kI64) {
      Value high = binary(Opcode::kMulHighS, x, number(low));
      floor = shifted(Opcode::kShrS, binary(Opcode::kAdd, high, x), m.shift - 1);
    } else {
      Value wide = r_.emit(Opcode::kExtendS, Type::kI64, {x});
      Value product = r_.emit(Opcode::kMul, Type::kI64, {wide, r_.constant(Type::kI64, low)});
      Value up = r_.constant(Type::kI64, 31 + m.shift);
      Value shift = r_.emit(Opcode::kShrS, Type::kI64, {product, up});
      floor = r_.emit(Opcode::kWrap, Type::kI32, {shift});
    }
    return binary(Opcode::kSub, floor, shifted(Opcode::kShrS, x, bits_ - 1));
  }

  Function& f_;
  Rewriter r_;
  Type type_ = Type::kI32;  // of the division
  unsigned bits_ = 32;
};

}  // namespace

void division_by_constants(Function& f) { DivisionReducer(f).run(); }

}  // namespace uptier::jit
