// Interval: its claims hold for every value, by the semantics of the operations themselves.
#include "jit/analysis/interval.h"

#include <gtest/gtest.h>

#include "jit/ir/semantics.h"
#include "tests/support/random_ir.h"

namespace uptier::test::interval_test {
namespace {

using jit::Interval;

constexpr Opcode kOperations[] = {
    Opcode::kAdd,          Opcode::kSub,          Opcode::kMul,          Opcode::kMulHighS,
    Opcode::kMulHighU,     Opcode::kDivS,         Opcode::kDivU,         Opcode::kRemS,
    Opcode::kRemU,         Opcode::kAnd,          Opcode::kOr,           Opcode::kXor,
    Opcode::kShl,          Opcode::kShrS,         Opcode::kShrU,         Opcode::kRotl,
    Opcode::kRotr,         Opcode::kAddTrap,      Opcode::kSubTrap,      Opcode::kMulTrap,
    Opcode::kEq,           Opcode::kNe,           Opcode::kLtS,          Opcode::kLtU,
    Opcode::kGtS,          Opcode::kGtU,          Opcode::kLeS,          Opcode::kLeU,
    Opcode::kGeS,          Opcode::kGeU,          Opcode::kClz,          Opcode::kCtz,
    Opcode::kPopcnt,       Opcode::kSext8,        Opcode::kSext16,       Opcode::kEqz,
    Opcode::kAddOverflows, Opcode::kSubOverflows, Opcode::kMulOverflows, Opcode::kWrap,
    Opcode::kExtendS,      Opcode::kExtendU,      Opcode::kSext32};

uint64_t bits_near_something(Random& r, Type t) {
  constexpr uint64_t kPlaces[] = {0,
                                  1,
                                  0x7F,
                                  0x80,
                                  0xFFFF,
                                  0x7FFFFFFF,
                                  0x80000000,
                                  0xFFFFFFFF,
                                  0x7FFFFFFFFFFFFFFF,
                                  0x8000000000000000,
                                  0xFFFFFFFFFFFFFFFF};
  uint64_t near = kPlaces[r.below(std::size(kPlaces))] + r.below(9) - 4;
  return jit::clip(t, r.chance(70) ? near : r.next() >> r.below(64));
}

struct Sample {
  Interval interval;
  std::vector<uint64_t> values;  // some values in the interval
};

// Returns the smallest interval that holds two random values, and some values in it.
Sample some_interval(Random& r, Type t) {
  Sample s;
  uint64_t a = bits_near_something(r, t), b = bits_near_something(r, t);
  s.interval = jit::join(jit::interval_of(t, a), jit::interval_of(t, b));
  s.values = {a, b};
  auto keep = [&](uint64_t x) {
    if (s.interval.holds(t, x)) s.values.push_back(x);
  };
  for (int n = 0; n < 4; ++n) {
    keep(bits_near_something(r, t));
    keep(jit::clip(t, a + r.below(5)));
    keep(jit::clip(t, b - r.below(5)));
  }
  return s;
}

std::string text(const Interval& i) {
  return "[" + std::to_string(i.min_s) + ", " + std::to_string(i.max_s) + "] [" +
         std::to_string(i.min_u) + ", " + std::to_string(i.max_u) + "]";
}

Type source_of(Opcode op, Type t) {
  if (op == Opcode::kWrap) return Type::kI64;
  bool extends = op == Opcode::kExtendS || op == Opcode::kExtendU;
  return extends ? Type::kI32 : t;
}

Type type_for(Opcode op, Random& r) {
  if (op == Opcode::kWrap) return Type::kI32;
  bool wide = op == Opcode::kExtendS || op == Opcode::kExtendU || op == Opcode::kSext32;
  return wide || r.chance(50) ? Type::kI64 : Type::kI32;
}

bool is_binary(Opcode op) {
  return info(op).shape == Shape::kBinary || info(op).shape == Shape::kCompare;
}

TEST(Interval, no_operation_leaves_what_is_said_of_it) {
  Random r(1);
  for (int n = 0; n < 60'000; ++n) {
    Opcode op = kOperations[r.below(std::size(kOperations))];
    Type t = type_for(op, r), source = source_of(op, t);
    Sample a = some_interval(r, source), b = some_interval(r, t);
    const Interval in[] = {a.interval, b.interval};
    Interval out = jit::interval_of(op, t, source, in);
    bool tests = info(op).shape == Shape::kCompare || info(op).shape == Shape::kTest;
    Type result = tests ? Type::kI32 : t;
    for (uint64_t x : a.values) {
      for (uint64_t y : b.values) {
        const uint64_t operands[] = {x, y};
        jit::Evaluation e = jit::evaluate(op, t, source, {operands, is_binary(op) ? 2u : 1u});
        if (e.trap != TrapCode::kNone) continue;
        ASSERT_TRUE(out.holds(result, e.bits))
            << info(op).text << " " << static_cast<int64_t>(x) << " " << static_cast<int64_t>(y)
            << " = " << e.bits << " of " << text(in[0]) << ", " << text(in[1]) << " not in "
            << text(out);
      }
    }
  }
}

TEST(Interval, what_holds_behind_a_comparison_stays) {
  Random r(2);
  for (int n = 0; n < 60'000; ++n) {
    auto op = static_cast<Opcode>(static_cast<uint32_t>(Opcode::kEq) + r.below(10));
    Type t = r.chance(50) ? Type::kI64 : Type::kI32;
    Sample a = some_interval(r, t), b = some_interval(r, t);
    for (bool holds : {true, false}) {
      auto left = jit::where(op, holds, t, a.interval, b.interval);
      auto right = jit::where(jit::mirrored(op), holds, t, b.interval, a.interval);
      for (uint64_t x : a.values) {
        for (uint64_t y : b.values) {
          const uint64_t operands[] = {x, y};
          if ((jit::evaluate(op, t, t, operands).bits != 0) != holds) continue;
          ASSERT_TRUE(left && left->holds(t, x)) << info(op).text << " " << x << " " << y;
          ASSERT_TRUE(right && right->holds(t, y)) << info(op).text << " " << x << " " << y;
        }
      }
    }
  }
}

struct Case {
  Opcode op;
  Interval a, b, want;
};

TEST(Interval, is_as_narrow_as_the_table_says) {
  auto s = [](int64_t min, int64_t max) { return jit::signed_interval(Type::kI32, min, max); };
  auto u = [](uint64_t min, uint64_t max) { return jit::unsigned_interval(Type::kI32, min, max); };
  const Case cases[] = {
      {Opcode::kAdd, s(1, 10), s(-1, -1), s(0, 9)},
      {Opcode::kSub, s(0, 10), s(0, 10), s(-10, 10)},
      {Opcode::kMul, s(-3, 4), s(5, 6), s(-18, 24)},
      {Opcode::kDivS, s(-9, 9), s(2, 2), s(-4, 4)},
      {Opcode::kDivU, u(0, UINT32_MAX), u(16, 16), u(0, UINT32_MAX / 16)},
      {Opcode::kRemS, s(INT32_MIN, INT32_MAX), s(10, 10), s(-9, 9)},
      {Opcode::kRemS, s(0, INT32_MAX), s(-10, 10), s(0, 9)},
      {Opcode::kAnd, s(INT32_MIN, INT32_MAX), s(255, 255), s(0, 255)},
      {Opcode::kOr, s(0, 100), s(0, 3), s(0, 127)},
      {Opcode::kShl, s(-2, 3), s(4, 4), s(-32, 48)},
      {Opcode::kShrS, s(-100, 100), s(3, 3), s(-13, 12)},
      {Opcode::kShrU, u(0, UINT32_MAX), u(28, 28), u(0, 15)},
      {Opcode::kAddTrap, s(0, INT32_MAX), s(1, 5), s(1, INT32_MAX)},
  };
  for (const Case& c : cases) {
    const Interval in[] = {c.a, c.b};
    Interval got = jit::interval_of(c.op, Type::kI32, Type::kI32, in);
    EXPECT_EQ(got, c.want) << info(c.op).text << " " << text(got) << " want " << text(c.want);
  }
}

}  // namespace
}  // namespace uptier::test::interval_test
