// For a divisor d and 32-bit x: floor(x / d) = floor(x * m / 2^(32 + s)) for a multiplier m of at
// most 33 bits. All products are taken in i64, so there is no need for a high-half multiplication.
#include <bit>

#include "jit/ir/dominators.h"
#include "jit/opt/passes.h"
#include "jit/opt/rewriter.h"

namespace uptier::jit {
namespace {

struct Magic {
  uint64_t multiplier;  // up to 2^33
  unsigned shift;       // beyond 32
};

// Returns m = ceil(2^(32 + s) / d) with s = ceil(log2 d), halved while that keeps it exact.
Magic unsigned_magic(uint32_t d) {
  auto s = static_cast<unsigned>(std::bit_width(d - 1));
  auto power = static_cast<unsigned __int128>(1) << (32 + s);
  auto low = static_cast<uint64_t>(power / d);
  auto high = static_cast<uint64_t>((power + (static_cast<unsigned __int128>(1) << s)) / d);
  while (s > 0 && low / 2 < high / 2) {
    low /= 2;
    high /= 2;
    --s;
  }
  return {high, s};
}

// The same for the magnitude of a signed divisor: precision of 31 bits.
Magic signed_magic(uint32_t d) {
  auto s = static_cast<unsigned>(std::bit_width(d - 1));
  unsigned exponent = 31 + s;
  auto power = static_cast<unsigned __int128>(1) << exponent;
  return {static_cast<uint64_t>(power / d) + 1, s};
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
    if (!division || i.type != Type::kI32) return true;
    auto c = r_.constant_of(f_.args(i)[1]);
    if (!c) return true;
    auto d = static_cast<uint32_t>(*c);
    bool is_signed = i.op == Opcode::kDivS || i.op == Opcode::kRemS;
    bool remainder = i.op == Opcode::kRemU || i.op == Opcode::kRemS;
    // 0 traps; -1 and the least number have rules of their own; the rest is for the shifts.
    uint32_t magnitude = is_signed && d > 0x80000000u ? 0 - d : d;
    if (magnitude < 2 || (is_signed && d == 0x80000000u) || d == 0xFFFFFFFFu) return true;
    Value x = f_.args(i)[0], divisor = f_.args(i)[1], result = i.result;
    Value same;
    if (remainder && is_signed && std::has_single_bit(magnitude)) {
      same = signed_power_remainder(x, magnitude);
    } else {
      same = is_signed ? signed_quotient(x, d) : unsigned_quotient(x, d);
      if (remainder) same = i32(Opcode::kSub, x, i32(Opcode::kMul, same, divisor));
    }
    r_.replace(result, same);
    return false;
  }

  Value i32(Opcode op, Value a, Value b) { return r_.emit(op, Type::kI32, {a, b}); }
  Value i64(Opcode op, Value a, Value b) { return r_.emit(op, Type::kI64, {a, b}); }
  Value i64(Opcode op, Value a) { return r_.emit(op, Type::kI64, {a}); }
  Value number(uint64_t n) { return r_.constant(Type::kI64, n); }
  Value count(uint64_t n) { return r_.constant(Type::kI32, n); }
  Value wrap(Value a) { return r_.emit(Opcode::kWrap, Type::kI32, {a}); }

  Value unsigned_quotient(Value x, uint32_t d) {
    if (std::has_single_bit(d)) return i32(Opcode::kShrU, x, count(std::countr_zero(d)));
    Magic m = unsigned_magic(d);
    Value wide = i64(Opcode::kExtendU, x);
    if (m.multiplier >> 32 == 0) {
      Value product = i64(Opcode::kMul, wide, number(m.multiplier));
      return wrap(i64(Opcode::kShrU, product, number(32 + m.shift)));
    }
    // A 33-bit multiplier 2^32 + m': x * m / 2^32 = x + t with t = x * m' / 2^32, and the sum is
    // halved before it can overflow.
    Value product = i64(Opcode::kMul, wide, number(m.multiplier & 0xFFFFFFFF));
    Value t = wrap(i64(Opcode::kShrU, product, number(32)));
    Value half = i32(Opcode::kShrU, i32(Opcode::kSub, x, t), count(1));
    return i32(Opcode::kShrU, i32(Opcode::kAdd, half, t), count(m.shift - 1));
  }

  Value signed_quotient(Value x, uint32_t d) {
    bool negative = d >> 31 != 0;
    uint32_t magnitude = negative ? 0 - d : d;
    Value q = std::has_single_bit(magnitude) ? signed_power_quotient(x, magnitude)
                                             : signed_magic_quotient(x, magnitude);
    return negative ? i32(Opcode::kSub, r_.constant(Type::kI32, 0), q) : q;
  }

  // Rounds towards zero: adds d - 1 to a negative x before the shift.
  Value signed_power_quotient(Value x, uint32_t d) {
    return i32(Opcode::kShrS, biased(x, d), count(std::countr_zero(d)));
  }

  Value signed_power_remainder(Value x, uint32_t d) {
    Value multiple = i32(Opcode::kAnd, biased(x, d), r_.constant(Type::kI32, 0 - d));
    return i32(Opcode::kSub, x, multiple);
  }

  Value biased(Value x, uint32_t d) {
    auto k = static_cast<unsigned>(std::countr_zero(d));
    Value sign = k == 1 ? x : i32(Opcode::kShrS, x, count(31));
    return i32(Opcode::kAdd, x, i32(Opcode::kShrU, sign, count(32 - k)));
  }

  Value signed_magic_quotient(Value x, uint32_t d) {
    Magic m = signed_magic(d);
    Value product = i64(Opcode::kMul, i64(Opcode::kExtendS, x), number(m.multiplier));
    Value floor = wrap(i64(Opcode::kShrS, product, number(31 + m.shift)));
    return i32(Opcode::kSub, floor, i32(Opcode::kShrS, x, count(31)));
  }

  Function& f_;
  Rewriter r_;
};

}  // namespace

void reduce_divisions(Function& f) { DivisionReducer(f).run(); }

}  // namespace uptier::jit
