// random_expression.h: random operations of all kinds on the values that a function has; see
// random_ir.h.
#pragma once

#include <string>
#include <vector>

#include "jit/frontend/builder_access.h"
#include "jit/ir/semantics.h"
#include "tests/support/random.h"

namespace uptier::test {

struct RandomOptions {
  int functions = 3;
  int statements = 40;  // in each function, nested ones included
  int variables = 16;   // in each function
  int depth = 3;        // of nested loops, branches and switches
  bool traps = true;    // operations may trap
  bool hosts = true;    // host functions of the corpus may be called
  bool guards = false;  // there are guards, and some of them fail
  // Constructs that compilers of languages seldom emit but passes must handle: indices that wander
  // and wrap around, cycles with two entrances, several back edges, conversions to the same type,
  // alias classes, invariant loads, refs everywhere, host functions that write to memory, loops
  // that fill and copy.
  bool odd = false;
  // The program reads its own probes' counts. Only the way it takes depends on them, never a
  // result.
  bool counts = false;
  // The shapes of random_shapes.h. With `addresses`, methods have addresses: those of the
  // interpreter.
  bool wide = false;
  bool addresses = true;
  // Built in the plain form (jit/frontend/plain_form.h), with every value that leaves its block in
  // memory.
  bool plain = false;
};

class RandomExpression {
 protected:
  static constexpr Type kTypes[] = {Type::kI32, Type::kI64, Type::kF32, Type::kF64};

  RandomExpression(Random& r, const RandomOptions& o, const Signature& s, const std::string& name)
      : r_(r),
        o_(o),
        b_(o.plain ? BuilderAccess::begin_plain(s, name, 0) : FunctionBuilder(s, name)) {}

  Type number_type() { return kTypes[r_.below(4)]; }
  bool odd(unsigned percent) { return o_.odd && r_.chance(percent); }
  bool wide(unsigned percent) { return o_.wide && r_.chance(percent); }
  size_t slot(Type t) const { return static_cast<size_t>(t); }

  // Remembers a value for direct use; a scope forgets its values at its end.
  Value keep(Value v) {
    values_.push_back(v);
    return v;
  }

  Value constant(Type t) { return b_.constant(t, random_bits(t, r_)); }

  // ---- Expressions ------------------------------------------------------------------------------

  Value leaf(Type t) {
    const auto& variables = variables_[slot(t)];
    if (!variables.empty() && r_.chance(60)) return b_.use(r_.pick(variables));
    for (int tries = 0; tries < 6 && !values_.empty(); ++tries) {
      Value v = r_.pick(values_);
      if (b_.type_of(v) == t) return v;
    }
    return t == Type::kRef ? base_ : constant(t);
  }

  Value value(Type t, int depth) {
    if (depth == 0 || r_.chance(15)) return leaf(t);
    Value v = t == Type::kRef ? pointer(depth) : is_int(t) ? integer(t, depth) : floating(t, depth);
    if (odd(12)) v = b_.convert(Opcode::kBitcast, t, v);
    return r_.chance(30) ? keep(v) : v;
  }

  // Returns the scratch page's address plus 0..1023.
  Value pointer(int depth) {
    if (r_.chance(30)) return b_.select(condition(depth - 1), leaf(Type::kRef), leaf(Type::kRef));
    Value offset = b_.binary(Opcode::kAnd, value(Type::kI64, depth - 1), b_.i64(1023));
    Value at = b_.binary(Opcode::kAdd, b_.convert(Opcode::kBitcast, Type::kI64, base_), offset);
    return b_.convert(Opcode::kBitcast, Type::kRef, at);
  }

  Opcode pick_op(std::initializer_list<Opcode> from) { return from.begin()[r_.below(from.size())]; }

  Value integer(Type t, int depth) {
    if (odd(15)) return to_integer(t, depth);
    if (wide(12)) return idiom(t, depth);
    switch (r_.below(10)) {
      case 0: return integer_unary(t, depth);
      case 1: return division(t, depth);
      case 2: return to_integer(t, depth);
      case 3: return load(t, depth);
      case 4: return b_.select(condition(depth - 1), value(t, depth - 1), value(t, depth - 1));
      case 5:
        if (t == Type::kI32) return condition(depth);
        [[fallthrough]];
      default: return integer_binary(t, depth);
    }
  }

  // Patterns that the instruction selector matches to other instructions than their operations
  // suggest.
  Value idiom(Type t, int depth) {
    using enum Opcode;
    Value x = value(t, depth - 1);
    auto bits = [&](uint64_t n) { return b_.constant(t, jit::clip(t, n)); };
    switch (r_.below(9)) {
      case 0: return b_.binary(kAnd, x, bits(UINT32_MAX >> (8 * r_.below(4))));
      case 1: {
        Value by = bits(8 * (1 + r_.below(t == Type::kI32 ? 3 : 7)));
        return b_.binary(r_.chance(70) ? kShrS : kShrU, b_.binary(kShl, x, by), by);
      }
      case 2: {
        static const std::vector<uint64_t> factors = {2, 3, 4, 5, 7, 8, 9, 15, 17, 64, ~0ull};
        return b_.binary(kMul, x, bits(r_.pick(factors)));
      }
      case 3: {
        Value y = b_.binary(kShl, value(t, depth - 1), bits(1 + r_.below(4)));
        return r_.chance(50) ? b_.binary(kAdd, x, y) : b_.binary(kAdd, y, x);
      }
      case 4: return b_.binary(kSub, x, b_.binary(kAnd, x, constant(t)));
      case 5: return r_.chance(50) ? b_.binary(kSub, bits(0), x) : b_.binary(kXor, x, bits(~0ull));
      case 6: return b_.binary(pick_op({kAdd, kSub, kXor, kAnd, kOr}), x, x);
      case 7:
        return b_.binary(pick_op({kDivU, kRemU, kDivS, kRemS}), x,
                         bits(uint64_t{1} << r_.below(t == Type::kI32 ? 32 : 64)));
      default: return b_.binary(pick_op({kAdd, kAnd, kOr, kXor}), load(t, depth), constant(t));
    }
  }

  // The same for conditions: operands in memory, tests of bits, sign tests, negations.
  Value test(int depth) {
    using enum Opcode;
    Type t = r_.chance(50) ? Type::kI32 : Type::kI64;
    auto compare = [&] {
      return pick_op({kEq, kNe, kLtS, kLtU, kGtS, kGtU, kLeS, kLeU, kGeS, kGeU});
    };
    auto byte = [&] { return b_.load(kLoad8U, t, address(depth)); };
    auto word = [&] { return b_.load(kLoad, t, address(depth)); };
    switch (r_.below(7)) {
      case 0:
        return b_.binary(compare(), byte(), b_.constant(t, r_.below(r_.chance(80) ? 256 : 400)));
      case 1: return b_.binary(compare(), word(), value(t, depth - 1));
      case 2: return b_.binary(compare(), value(t, depth - 1), word());
      case 3: {
        Value some = b_.binary(kAnd, r_.chance(50) ? word() : value(t, depth - 1), constant(t));
        return b_.binary(r_.chance(50) ? kEq : kNe, some, b_.constant(t, 0));
      }
      case 4: return b_.binary(r_.chance(50) ? kLtS : kGeS, value(t, depth - 1), b_.constant(t, 0));
      case 5: return b_.unary(kEqz, condition(depth - 1));
      default: return b_.binary(pick_op({kAnd, kOr}), condition(depth - 1), condition(depth - 1));
    }
  }

  Value integer_unary(Type t, int depth) {
    using enum Opcode;
    if (t == Type::kI64 && r_.chance(20)) return b_.unary(kSext32, value(t, depth - 1));
    return b_.unary(pick_op({kClz, kCtz, kPopcnt, kSext8, kSext16}), value(t, depth - 1));
  }

  Value integer_binary(Type t, int depth) {
    using enum Opcode;
    Value x = value(t, depth - 1);
    Value y = r_.chance(30) ? constant(t) : value(t, depth - 1);
    if (o_.traps && (r_.chance(1) || odd(3)))
      return b_.binary(pick_op({kAddTrap, kSubTrap, kMulTrap}), x, y);
    return b_.binary(pick_op({kAdd, kAdd, kSub, kMul, kAnd, kOr, kXor, kShl, kShrS, kShrU, kRotl,
                              kRotr, kMulHighS, kMulHighU}),
                     x, y);
  }

  // The divisor is seldom 0 or -1.
  Value division(Type t, int depth) {
    using enum Opcode;
    Value x = value(t, depth - 1), y;
    if (o_.traps && r_.chance(2)) {
      y = value(t, depth - 1);
    } else if (r_.chance(40)) {
      static const std::vector<int64_t> divisors = {
          1,     2,         3,  7,   8,           10,        -3,        1000,
          65536, INT32_MIN, -1, 641, -1000000007, INT64_MIN, INT64_MAX, 6700417};
      y = b_.constant(t, jit::clip(t, static_cast<uint64_t>(r_.pick(divisors))));
    } else {
      y = b_.binary(kAnd, value(t, depth - 1), b_.constant(t, 0xff));
      y = b_.binary(kOr, y, b_.constant(t, 1));
    }
    return b_.binary(pick_op({kDivS, kDivU, kRemS, kRemU}), x, y);
  }

  Value to_integer(Type t, int depth) {
    using enum Opcode;
    Type same = t == Type::kI32 ? Type::kF32 : Type::kF64;
    switch (r_.below(4)) {
      case 0: return b_.convert(kBitcast, t, number(value(same, depth - 1)));
      case 1: {
        Type from = r_.chance(50) ? Type::kF32 : Type::kF64;
        bool trapping = o_.traps && r_.chance(5);
        Opcode op = trapping ? pick_op({kTruncS, kTruncU}) : pick_op({kTruncSatS, kTruncSatU});
        return b_.convert(op, t, value(from, depth - 1));
      }
      default:
        if (t == Type::kI32) return b_.convert(kWrap, t, value(Type::kI64, depth - 1));
        return b_.convert(pick_op({kExtendS, kExtendU}), t, value(Type::kI32, depth - 1));
    }
  }

  // Returns an i32 that is 0 or 1, or any i32.
  Value condition(int depth) {
    using enum Opcode;
    if (depth <= 0) return leaf(Type::kI32);
    if (wide(12)) return test(depth);
    Type t = r_.chance(6) ? Type::kRef : number_type();
    Value x = value(t, depth - 1);
    if (t == Type::kRef) {
      if (r_.chance(30)) return b_.unary(kEqz, x);
      return b_.binary(pick_op({kEq, kNe}), x, value(t, depth - 1));
    }
    Value y = r_.chance(30) ? constant(t) : value(t, depth - 1);
    if (is_float(t)) return b_.binary(pick_op({kFEq, kFNe, kFLt, kFGt, kFLe, kFGe}), x, y);
    if (r_.chance(10)) return b_.unary(kEqz, x);
    if (r_.chance(10)) {
      return b_.binary(pick_op({kAddOverflows, kSubOverflows, kMulOverflows}), x, y);
    }
    return b_.binary(pick_op({kEq, kNe, kLtS, kLtU, kGtS, kGtU, kLeS, kLeU, kGeS, kGeU}), x, y);
  }

  // Returns `x`, or 0.25 if it is a NaN.
  Value number(Value x) {
    Type t = b_.type_of(x);
    Value quarter = t == Type::kF32 ? b_.f32(0.25f) : b_.f64(0.25);
    return b_.select(b_.binary(Opcode::kFEq, x, x), x, quarter);
  }

  Value floating(Type t, int depth) {
    using enum Opcode;
    Type other = t == Type::kF32 ? Type::kF64 : Type::kF32;
    Value x = value(t, depth - 1);
    switch (r_.below(10)) {
      case 0: return b_.unary(pick_op({kFAbs, kFNeg, kFSqrt}), x);
      case 1: return b_.unary(pick_op({kFCeil, kFFloor, kFTrunc, kFNearest}), x);
      case 2: return b_.binary(pick_op({kFMin, kFMax}), x, value(t, depth - 1));
      case 3: return b_.binary(kFCopysign, x, number(value(t, depth - 1)));
      case 4: return b_.select(condition(depth - 1), x, value(t, depth - 1));
      case 5: return load(t, depth);
      case 6: return b_.convert(t == Type::kF32 ? kDemote : kPromote, t, value(other, depth - 1));
      case 7: {
        Value from = value(r_.chance(50) ? Type::kI32 : Type::kI64, depth - 1);
        if (r_.chance(75)) return b_.convert(pick_op({kConvertS, kConvertU}), t, from);
        Type same = t == Type::kF32 ? Type::kI32 : Type::kI64;
        return b_.convert(kBitcast, t, value(same, depth - 1));
      }
      default: return b_.binary(pick_op({kFAdd, kFSub, kFMul, kFDiv}), x, value(t, depth - 1));
    }
  }

  // ---- Memory -----------------------------------------------------------------------------------

  // Returns base (0..1023) + index (0..1023) + offset (0..1999) + 8 bytes: inside the page.
  Address address(int depth, bool writes = false) {
    Address at;
    if (odd(30)) return odd_address(depth, writes);
    if (o_.traps && wide(1)) return far_address(depth);
    if (o_.traps && r_.chance(10)) return difference(depth);
    at.base = r_.chance(50) ? base_ : value(Type::kRef, depth - 1);
    if (r_.chance(20)) at.base = b_.convert(Opcode::kBitcast, Type::kI64, at.base);
    at.offset = r_.chance(30) ? 0 : static_cast<uint32_t>(r_.below(2000));
    if (r_.chance(60)) {
      Type t = r_.chance(70) ? Type::kI32 : Type::kI64;
      bool far = o_.traps && r_.chance(1);
      Value mask = b_.constant(t, far ? 4095 : 1023);
      at.index = b_.binary(Opcode::kAnd, value(t, depth - 1), mask);
      if (far && writes) at.index = b_.binary(Opcode::kOr, at.index, b_.constant(t, 4096));
      if (far) at.flags = kMemTraps;
    }
    if (r_.chance(50)) at.flags |= kMemTraps;
    return at;
  }

  // Returns an address whose offset does not fit a displacement; the access faults.
  Address far_address(int depth) {
    Address at{.base = base_, .flags = kMemTraps};
    at.offset = static_cast<uint32_t>(r_.next() >> 33) | uint32_t{1} << 31;
    Type t = r_.chance(50) ? Type::kI32 : Type::kI64;
    Value v = b_.binary(Opcode::kAnd, value(t, depth - 1), b_.constant(t, 1023));
    if (r_.chance(80)) at.index = v;
    return at;
  }

  // Returns base + (1024..2047 - 1..1024): inside the page as well, and rarely in the guard region
  // before it.
  Address difference(int depth) {
    bool far = r_.chance(2);
    Value v = b_.binary(Opcode::kAnd, value(Type::kI32, depth - 1), b_.i32(far ? 2047 : 1023));
    if (!far) v = b_.binary(Opcode::kOr, v, b_.i32(1024));
    Value less = b_.binary(Opcode::kAdd, v, b_.i32(-1 - static_cast<int32_t>(r_.below(1024))));
    return {.base = base_, .index = less, .flags = kMemTraps | kMemFenced};
  }

  // Returns an address with sums and shifts in its index, or in an alias class with its own range;
  // unless it writes, any address that an i32 index can reach.
  Address odd_address(int depth, bool writes) {
    using enum Opcode;
    Address at{.base = base_};
    Type t = r_.chance(70) ? Type::kI32 : Type::kI64;
    auto masked = [&](uint64_t mask) {
      return b_.binary(kAnd, value(t, depth - 1), b_.constant(t, mask));
    };
    size_t kind = r_.below(100);
    if (kind < 35) {  // class 1: bytes 0 to 1031, class 2: 2048 to 3079
      unsigned n = 1 + static_cast<unsigned>(r_.below(2));
      at.flags = alias_class(n);
      at.offset = (n == 2 ? 2048 : 0) +
                  static_cast<uint32_t>(r_.chance(70) ? 8 * r_.below(4) : r_.below(512));
      if (r_.chance(50)) at.index = masked(511);
    } else if (kind < 70) {
      uint64_t shift = r_.below(5);
      at.index = b_.binary(kShl, masked(1023 >> shift), b_.constant(t, shift));
      if (r_.chance(50)) at.index = b_.binary(kAdd, at.index, b_.constant(t, r_.below(900)));
    } else if (kind < 97 || !o_.traps) {
      at.index = b_.binary(kAdd, masked(255), b_.constant(t, r_.below(900)));
      if (r_.chance(50)) at.index = b_.binary(kShl, at.index, b_.constant(t, 1));
    } else if (writes || r_.chance(30)) {  // outside of the page
      at.offset = static_cast<uint32_t>(r_.next() >> (32 + r_.below(19))) | 8192;
      at.flags = kMemTraps;
    } else if (r_.chance(20)) {
      at.index = value(Type::kI32, depth - 1);
      at.flags = kMemTraps;
    } else {
      Value v = b_.binary(kAnd, value(Type::kI32, depth - 1), b_.i32(2047));
      at.index = b_.binary(pick_op({kSub, kAdd}), v, b_.i32(static_cast<int32_t>(r_.below(64))));
      at.flags = kMemTraps | (r_.chance(50) ? kMemFenced : 0);
    }
    if (r_.chance(30)) at.flags |= kMemTraps;
    return at;
  }

  Value load(Type t, int depth) {
    using enum Opcode;
    if (odd(5)) {
      auto offset = static_cast<uint32_t>(4064 + 8 * r_.below(4));
      Value v =
          b_.load(kLoad, Type::kI64, {.base = base_, .offset = offset, .flags = kMemInvariant});
      if (t == Type::kI64) return v;
      if (t == Type::kI32) return b_.convert(kWrap, t, v);
    }
    Address at = address(depth);
    if (is_float(t) || r_.chance(40)) return b_.load(kLoad, t, at);
    if (t == Type::kI64 && r_.chance(40)) return b_.load(pick_op({kLoad32S, kLoad32U}), t, at);
    return b_.load(pick_op({kLoad8S, kLoad8U, kLoad16S, kLoad16U}), t, at);
  }

  Random& r_;
  const RandomOptions& o_;
  FunctionBuilder b_;
  Value base_;
  std::vector<Variable> variables_[6];  // by type
  std::vector<Value> values_;           // that dominate the current position
};

}  // namespace uptier::test
