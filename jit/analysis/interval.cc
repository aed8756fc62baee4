#include "jit/analysis/interval.h"

#include <algorithm>
#include <bit>
#include <initializer_list>

#include "jit/ir/semantics.h"

namespace uptier::jit {
namespace {

unsigned width(Type t) { return is_wide(t) ? 64 : 32; }
int64_t least(Type t) { return is_wide(t) ? INT64_MIN : INT32_MIN; }
int64_t greatest(Type t) { return is_wide(t) ? INT64_MAX : INT32_MAX; }
uint64_t all_ones(Type t) { return clip(t, UINT64_MAX); }
int64_t as_signed(Type t, uint64_t bits) {
  return is_wide(t) ? static_cast<int64_t>(bits) : static_cast<int32_t>(bits);
}
uint64_t as_bits(Type t, int64_t x) { return clip(t, static_cast<uint64_t>(x)); }
bool fits(Type t, int64_t x) { return least(t) <= x && x <= greatest(t); }

// Narrows each reading by the other; returns whether any value is left.
bool settle(Type t, Interval& i) {
  auto border = static_cast<uint64_t>(greatest(t));
  bool one_sign = i.min_s >= 0 || i.max_s < 0;
  if (i.min_s > i.max_s) return false;
  if (one_sign) {
    i.min_u = std::max(i.min_u, as_bits(t, i.min_s));
    i.max_u = std::min(i.max_u, as_bits(t, i.max_s));
  }
  if (i.min_u > i.max_u) return false;
  if (i.max_u <= border || i.min_u > border) {
    i.min_s = std::max(i.min_s, as_signed(t, i.min_u));
    i.max_s = std::min(i.max_s, as_signed(t, i.max_u));
  }
  return i.min_s <= i.max_s;
}

Interval settled(Type t, Interval i) { return settle(t, i) ? i : full_interval(t); }

// ---- Arithmetic -------------------------------------------------------------------------------

struct Signed {
  int64_t min, max;
};

// Returns the exact results as signed numbers, without wrapping; none if one may not fit 64 bits.
std::optional<Signed> exact(Opcode op, const Interval& a, const Interval& b) {
  Signed s{};
  if (op == Opcode::kAdd) {
    bool over = __builtin_add_overflow(a.min_s, b.min_s, &s.min);
    over |= __builtin_add_overflow(a.max_s, b.max_s, &s.max);
    return over ? std::nullopt : std::optional(s);
  }
  if (op == Opcode::kSub) {
    bool over = __builtin_sub_overflow(a.min_s, b.max_s, &s.min);
    over |= __builtin_sub_overflow(a.max_s, b.min_s, &s.max);
    return over ? std::nullopt : std::optional(s);
  }
  s = {INT64_MAX, INT64_MIN};
  for (int64_t x : {a.min_s, a.max_s}) {
    for (int64_t y : {b.min_s, b.max_s}) {
      int64_t product;
      if (__builtin_mul_overflow(x, y, &product)) return std::nullopt;
      s = {std::min(s.min, product), std::max(s.max, product)};
    }
  }
  return s;
}

std::optional<Signed> exact_in(Opcode op, Type t, const Interval& a, const Interval& b) {
  auto s = exact(op, a, b);
  return s && fits(t, s->min) && fits(t, s->max) ? s : std::nullopt;
}

Opcode wrapping(Opcode op) {
  switch (op) {
    case Opcode::kAddOverflows:
    case Opcode::kAddTrap: return Opcode::kAdd;
    case Opcode::kSubOverflows:
    case Opcode::kSubTrap: return Opcode::kSub;
    case Opcode::kMulOverflows:
    case Opcode::kMulTrap: return Opcode::kMul;
    default: return op;
  }
}

// Handles unsigned sums and differences that wrap at both ends, or at neither.
void wrap_unsigned(Opcode op, Type t, const Interval& a, const Interval& b, Interval& r) {
  if (op == Opcode::kMul) {
    uint64_t most;
    if (__builtin_mul_overflow(a.max_u, b.max_u, &most) || most > all_ones(t)) return;
    r.min_u = a.min_u * b.min_u;
    r.max_u = most;
    return;
  }
  bool add = op == Opcode::kAdd;
  uint64_t low = add ? b.min_u : b.max_u, high = add ? b.max_u : b.min_u;
  bool wraps_low = add ? a.min_u > all_ones(t) - low : a.min_u < low;
  bool wraps_high = add ? a.max_u > all_ones(t) - high : a.max_u < high;
  if (wraps_low != wraps_high) return;
  r.min_u = clip(t, add ? a.min_u + low : a.min_u - low);
  r.max_u = clip(t, add ? a.max_u + high : a.max_u - high);
}

Interval arithmetic(Opcode op, Type t, const Interval& a, const Interval& b) {
  Interval r = full_interval(t);
  if (auto s = exact_in(op, t, a, b)) {
    r.min_s = s->min;
    r.max_s = s->max;
  }
  wrap_unsigned(op, t, a, b, r);
  return settled(t, r);
}

// A result that does not trap is exact.
Interval trapping(Opcode op, Type t, const Interval& a, const Interval& b) {
  auto s = exact(wrapping(op), a, b);
  return s ? signed_interval(t, s->min, s->max) : full_interval(t);
}

Interval quotient(Opcode op, Type t, const Interval& a, const Interval& b) {
  bool same = a.non_negative() && b.non_negative();
  if (op == Opcode::kDivU || same) {
    if (b.max_u == 0) return full_interval(t);
    return unsigned_interval(t, a.min_u / b.max_u, a.max_u / std::max<uint64_t>(1, b.min_u));
  }
  bool plain = b.constant() && b.min_s != 0 && b.min_s != -1;
  if (!plain) return full_interval(t);
  int64_t x = a.min_s / b.min_s, y = a.max_s / b.min_s;
  return signed_interval(t, std::min(x, y), std::max(x, y));
}

Interval remainder(Opcode op, Type t, const Interval& a, const Interval& b) {
  bool same = a.non_negative() && b.non_negative();
  if (op == Opcode::kRemU || same) {
    if (b.max_u == 0) return full_interval(t);
    if (a.max_u < b.min_u) return a;
    return unsigned_interval(t, 0, std::min(a.max_u, b.max_u - 1));
  }
  // The result has the sign of the dividend.
  int64_t most = std::max(b.max_s, b.min_s == INT64_MIN ? INT64_MAX : -b.min_s);
  most = std::max<int64_t>(most - (b.min_s == INT64_MIN ? 0 : 1), 0);
  return signed_interval(t, a.min_s < 0 ? std::max(-most, a.min_s) : 0,
                         a.max_s > 0 ? std::min(most, a.max_s) : 0);
}

// ---- Bits -------------------------------------------------------------------------------------

// Returns the least number of the form 2^k - 1 that is not below x.
uint64_t filled(uint64_t x) { return x == 0 ? 0 : UINT64_MAX >> std::countl_zero(x); }

Interval logical(Opcode op, Type t, const Interval& a, const Interval& b) {
  switch (op) {
    case Opcode::kAnd: return unsigned_interval(t, 0, std::min(a.max_u, b.max_u));
    case Opcode::kOr:
      return unsigned_interval(t, std::max(a.min_u, b.min_u), filled(a.max_u | b.max_u));
    default: return unsigned_interval(t, 0, filled(a.max_u | b.max_u));
  }
}

Interval shift_left(Type t, const Interval& a, unsigned by) {
  Interval r = full_interval(t);
  if (a.max_u <= all_ones(t) >> by) {
    r.min_u = a.min_u << by;
    r.max_u = a.max_u << by;
  }
  if (a.min_s >= least(t) >> by && a.max_s <= greatest(t) >> by) {
    r.min_s = static_cast<int64_t>(static_cast<uint64_t>(a.min_s) << by);
    r.max_s = static_cast<int64_t>(static_cast<uint64_t>(a.max_s) << by);
  }
  return settled(t, r);
}

Interval shift(Opcode op, Type t, const Interval& a, const Interval& b) {
  // Counts are taken modulo the width.
  bool known = b.max_u < width(t);
  auto low = static_cast<unsigned>(known ? b.min_u : 0);
  auto high = static_cast<unsigned>(known ? b.max_u : width(t) - 1);
  switch (op) {
    case Opcode::kShl: return low == high ? shift_left(t, a, low) : full_interval(t);
    case Opcode::kShrU: return unsigned_interval(t, a.min_u >> high, a.max_u >> low);
    case Opcode::kShrS:
      return signed_interval(t, a.min_s >> (a.min_s < 0 ? low : high),
                             a.max_s >> (a.max_s < 0 ? high : low));
    default: return full_interval(t);
  }
}

Interval sign_extended(Type t, const Interval& a, unsigned bits) {
  int64_t most = (int64_t{1} << (bits - 1)) - 1;
  bool stays = a.min_s >= -most - 1 && a.max_s <= most;
  return stays ? a : signed_interval(t, -most - 1, most);
}

Interval unary(Opcode op, Type t, const Interval& a) {
  switch (op) {
    case Opcode::kClz:
    case Opcode::kCtz:
    case Opcode::kPopcnt: return unsigned_interval(t, 0, width(t));
    case Opcode::kSext8: return sign_extended(t, a, 8);
    case Opcode::kSext16: return sign_extended(t, a, 16);
    case Opcode::kSext32: return sign_extended(t, a, 32);
    default: return full_interval(t);
  }
}

Interval wrapped(const Interval& a) {
  bool is_signed = fits(Type::kI32, a.min_s) && fits(Type::kI32, a.max_s);
  if (is_signed) return signed_interval(Type::kI32, a.min_s, a.max_s);
  bool is_unsigned = a.max_u <= UINT32_MAX;
  return is_unsigned ? unsigned_interval(Type::kI32, a.min_u, a.max_u) : full_interval(Type::kI32);
}

Interval converted(Opcode op, Type t, Type source, const Interval& a) {
  if (op == Opcode::kWrap && source == Type::kI64) return wrapped(a);
  if (op == Opcode::kExtendS) return signed_interval(t, a.min_s, a.max_s);
  if (op == Opcode::kExtendU) return unsigned_interval(t, a.min_u, a.max_u);
  return full_interval(t);
}

Interval binary(Opcode op, Type t, const Interval& a, const Interval& b) {
  switch (op) {
    case Opcode::kAdd:
    case Opcode::kSub:
    case Opcode::kMul: return arithmetic(op, t, a, b);
    case Opcode::kAddTrap:
    case Opcode::kSubTrap:
    case Opcode::kMulTrap: return trapping(op, t, a, b);
    case Opcode::kDivS:
    case Opcode::kDivU: return quotient(op, t, a, b);
    case Opcode::kRemS:
    case Opcode::kRemU: return remainder(op, t, a, b);
    case Opcode::kMulHighU: return unsigned_interval(t, 0, std::min(a.max_u, b.max_u));
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor: return logical(op, t, a, b);
    default: return shift(op, t, a, b);
  }
}

Interval truth(std::optional<bool> known) {
  return unsigned_interval(Type::kI32, known == true ? 1 : 0, known == false ? 0 : 1);
}

bool is_comparison(Opcode op) { return op >= Opcode::kEq && op <= Opcode::kGeU; }

Opcode opposite(Opcode op) {
  switch (op) {
    case Opcode::kEq: return Opcode::kNe;
    case Opcode::kNe: return Opcode::kEq;
    case Opcode::kLtS: return Opcode::kGeS;
    case Opcode::kGeS: return Opcode::kLtS;
    case Opcode::kGtS: return Opcode::kLeS;
    case Opcode::kLeS: return Opcode::kGtS;
    case Opcode::kLtU: return Opcode::kGeU;
    case Opcode::kGeU: return Opcode::kLtU;
    case Opcode::kGtU: return Opcode::kLeU;
    default: return Opcode::kGtU;
  }
}

std::optional<bool> equal(const Interval& a, const Interval& b) {
  bool apart = a.max_s < b.min_s || b.max_s < a.min_s || a.max_u < b.min_u || b.max_u < a.min_u;
  if (apart) return false;
  return a.constant() && b.constant() ? std::optional(true) : std::nullopt;
}

template <typename T>
std::optional<bool> less(T max, T other_min, T min, T other_max) {
  if (max < other_min) return true;
  return min >= other_max ? std::optional(false) : std::nullopt;
}

std::optional<bool> inverse(std::optional<bool> known) {
  return known ? std::optional(!*known) : std::nullopt;
}

std::optional<bool> compare(Opcode op, const Interval& a, const Interval& b) {
  switch (op) {
    case Opcode::kEq: return equal(a, b);
    case Opcode::kNe: return inverse(equal(a, b));
    case Opcode::kLtS: return less(a.max_s, b.min_s, a.min_s, b.max_s);
    case Opcode::kGtS: return less(b.max_s, a.min_s, b.min_s, a.max_s);
    case Opcode::kLeS: return inverse(less(b.max_s, a.min_s, b.min_s, a.max_s));
    case Opcode::kGeS: return inverse(less(a.max_s, b.min_s, a.min_s, b.max_s));
    case Opcode::kLtU: return less(a.max_u, b.min_u, a.min_u, b.max_u);
    case Opcode::kGtU: return less(b.max_u, a.min_u, b.min_u, a.max_u);
    case Opcode::kLeU: return inverse(less(b.max_u, a.min_u, b.min_u, a.max_u));
    default: return inverse(less(a.max_u, b.min_u, a.min_u, b.max_u));
  }
}

// Returns `a` without the single value `b`.
std::optional<Interval> without(Type t, Interval a, const Interval& b) {
  if (!b.constant()) return a;
  if (a.constant()) return a.min_u == b.min_u ? std::nullopt : std::optional(a);
  if (a.min_u == b.min_u) ++a.min_u;
  if (a.max_u == b.min_u) --a.max_u;
  if (a.min_s == b.min_s) ++a.min_s;
  if (a.max_s == b.min_s) --a.max_s;
  return settle(t, a) ? std::optional(a) : std::nullopt;
}

}  // namespace

bool Interval::holds(Type t, uint64_t bits) const {
  int64_t s = as_signed(t, bits);
  return min_u <= bits && bits <= max_u && min_s <= s && s <= max_s;
}

Interval full_interval(Type t) { return {least(t), greatest(t), 0, all_ones(t)}; }

Interval interval_of(Type t, uint64_t bits) {
  int64_t s = as_signed(t, bits);
  return {s, s, bits, bits};
}

Interval signed_interval(Type t, int64_t min, int64_t max) {
  Interval i = full_interval(t);
  i.min_s = std::max(i.min_s, min);
  i.max_s = std::min(i.max_s, max);
  return settled(t, i);
}

Interval unsigned_interval(Type t, uint64_t min, uint64_t max) {
  Interval i = full_interval(t);
  i.min_u = std::max(i.min_u, min);
  i.max_u = std::min(i.max_u, max);
  return settled(t, i);
}

Interval join(const Interval& a, const Interval& b) {
  return {std::min(a.min_s, b.min_s), std::max(a.max_s, b.max_s), std::min(a.min_u, b.min_u),
          std::max(a.max_u, b.max_u)};
}

std::optional<Interval> meet(Type t, const Interval& a, const Interval& b) {
  Interval i = {std::max(a.min_s, b.min_s), std::min(a.max_s, b.max_s), std::max(a.min_u, b.min_u),
                std::min(a.max_u, b.max_u)};
  return settle(t, i) ? std::optional(i) : std::nullopt;
}

Interval interval_of(Opcode op, Type type, Type source, std::span<const Interval> operands) {
  switch (info(op).shape) {
    case Shape::kBinary:
      return is_int(type) ? binary(op, type, operands[0], operands[1]) : full_interval(type);
    case Shape::kUnary: return unary(op, type, operands[0]);
    case Shape::kConvert: return converted(op, type, source, operands[0]);
    case Shape::kCompare: return truth(decide(op, operands[0], operands[1], type));
    case Shape::kTest: return truth(decide(Opcode::kEq, operands[0], interval_of(type, 0), type));
    case Shape::kSelect: return join(operands[1], operands[2]);
    default: return full_interval(type);
  }
}

std::optional<bool> decide(Opcode op, const Interval& a, const Interval& b, Type type) {
  if (is_comparison(op)) return compare(op, a, b);
  bool overflows = op >= Opcode::kAddOverflows && op <= Opcode::kMulOverflows;
  if (overflows && exact_in(wrapping(op), type, a, b)) return false;
  return std::nullopt;
}

std::optional<Interval> where(Opcode op, bool holds, Type type, const Interval& a,
                              const Interval& b) {
  if (!holds) op = opposite(op);
  Interval r = full_interval(type);
  switch (op) {
    case Opcode::kEq: return meet(type, a, b);
    case Opcode::kNe: return without(type, a, b);
    case Opcode::kLtS:
      if (b.max_s == least(type)) return std::nullopt;
      r.max_s = b.max_s - 1;
      break;
    case Opcode::kGtS:
      if (b.min_s == greatest(type)) return std::nullopt;
      r.min_s = b.min_s + 1;
      break;
    case Opcode::kLeS: r.max_s = b.max_s; break;
    case Opcode::kGeS: r.min_s = b.min_s; break;
    case Opcode::kLtU:
      if (b.max_u == 0) return std::nullopt;
      r.max_u = b.max_u - 1;
      break;
    case Opcode::kGtU:
      if (b.min_u == all_ones(type)) return std::nullopt;
      r.min_u = b.min_u + 1;
      break;
    case Opcode::kLeU: r.max_u = b.max_u; break;
    case Opcode::kGeU: r.min_u = b.min_u; break;
    default: return a;
  }
  return meet(type, a, r);
}

Opcode mirrored(Opcode op) {
  switch (op) {
    case Opcode::kLtS: return Opcode::kGtS;
    case Opcode::kGtS: return Opcode::kLtS;
    case Opcode::kLeS: return Opcode::kGeS;
    case Opcode::kGeS: return Opcode::kLeS;
    case Opcode::kLtU: return Opcode::kGtU;
    case Opcode::kGtU: return Opcode::kLtU;
    case Opcode::kLeU: return Opcode::kGeU;
    case Opcode::kGeU: return Opcode::kLeU;
    default: return op;
  }
}

}  // namespace uptier::jit
