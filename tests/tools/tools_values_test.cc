#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sampler/gap.h"
#include "tools/values.h"

namespace uptier::tools::tools_values_test {
namespace {

constexpr Type kTypes[] = {Type::kI32, Type::kI64, Type::kF32, Type::kF64, Type::kRef};

uint64_t f32(float v) { return std::bit_cast<uint32_t>(v); }
uint64_t f64(double v) { return std::bit_cast<uint64_t>(v); }

TEST(Values, numbers_are_parsed_to_their_bits) {
  struct Row {
    Type type;
    const char* text;
    uint64_t bits;
  };
  const Row rows[] = {
      {Type::kI32, "0", 0},
      {Type::kI32, "-0", 0},
      {Type::kI32, "5", 5},
      {Type::kI32, "i32:5", 5},
      {Type::kI32, "-1", 0xffffffff},
      {Type::kI32, "2147483647", 0x7fffffff},
      {Type::kI32, "-2147483648", 0x80000000},
      {Type::kI32, "4294967295", 0xffffffff},
      {Type::kI32, "0xffffffff", 0xffffffff},
      {Type::kI32, "0XfF", 255},
      {Type::kI32, "-0x80000000", 0x80000000},
      {Type::kI32, "010", 10},
      {Type::kI32, "08", 8},
      {Type::kI64, "-1", UINT64_MAX},
      {Type::kI64, "i64:-5", UINT64_MAX - 4},
      {Type::kI64, "18446744073709551615", UINT64_MAX},
      {Type::kI64, "-9223372036854775808", uint64_t{1} << 63},
      {Type::kI64, "0xffffffffffffffff", UINT64_MAX},
      {Type::kRef, "0x7fff00001234", 0x7fff00001234},
      {Type::kRef, "ref:1", 1},
      {Type::kF32, "1.5", f32(1.5f)},
      {Type::kF32, "f32:-0", f32(-0.0f)},
      {Type::kF32, "0.1", f32(0.1f)},
      {Type::kF32, "3.4028234e38", f32(std::numeric_limits<float>::max())},
      {Type::kF32, "1e-45", 1},
      {Type::kF32, "inf", f32(INFINITY)},
      {Type::kF32, "-inf", f32(-INFINITY)},
      {Type::kF64, "f64:0.1", f64(0.1)},
      {Type::kF64, "-0.0", uint64_t{1} << 63},
      {Type::kF64, "1e308", f64(1e308)},
      {Type::kF64, "5e-324", 1},
      {Type::kF64, "0x1.8p1", f64(3)},
      {Type::kF64, "inf", f64(HUGE_VAL)},
  };
  for (const Row& row : rows) {
    auto bits = parse_value(row.type, row.text);
    ASSERT_TRUE(bits.has_value()) << type_name(row.type) << " " << row.text;
    EXPECT_EQ(*bits, row.bits) << type_name(row.type) << " " << row.text;
  }
  EXPECT_TRUE(std::isnan(std::bit_cast<double>(parse_value(Type::kF64, "nan").value_or(0))));
  EXPECT_EQ(*parse_value(Type::kF32, "-nan") >> 31, 1u) << "the sign of a NaN is kept";
}

TEST(Values, what_is_not_a_number_or_does_not_fit_is_refused) {
  for (Type t : kTypes) {
    std::string name = type_name(t);
    for (std::string text : {"", " ", "x", "-", "--1", "1x", "1 ", " 1", " -1", "\t1", "\n1", ":1",
                             "0x", "0xg", "1,5", "void:1", "i31:1"}) {
      EXPECT_FALSE(parse_value(t, text).has_value()) << name << " \"" << text << "\"";
    }
    EXPECT_FALSE(parse_value(t, name + ":").has_value());
    EXPECT_FALSE(parse_value(t, name + ":" + name + ":1").has_value());
    EXPECT_FALSE(parse_value(t, std::string("1\0", 2)).has_value()) << name;
    for (Type other : kTypes) {
      std::string text = type_name(other) + std::string(":1");
      EXPECT_EQ(parse_value(t, text).has_value(), t == other) << name << " " << text;
    }
  }
  for (const char* text : {"1.5", "1e3", "nan", "inf", "0x1p3", "18446744073709551616",
                           "-9223372036854775809", "0x10000000000000000"}) {
    EXPECT_FALSE(parse_value(Type::kI64, text).has_value()) << text;
  }
  for (const char* text : {"4294967296", "-2147483649", "0x100000000", "-0x80000001"}) {
    EXPECT_FALSE(parse_value(Type::kI32, text).has_value()) << text;
    EXPECT_TRUE(parse_value(Type::kI64, text).has_value()) << text;
  }
  EXPECT_FALSE(parse_value(Type::kF64, "1e309").has_value());
  EXPECT_FALSE(parse_value(Type::kF32, "1e39").has_value());
  EXPECT_FALSE(parse_value(Type::kF32, "-3.5e38").has_value());
}

TEST(Values, integers_are_printed_as_signed_decimals) {
  EXPECT_EQ(print_value(Type::kI32, 5), "5");
  EXPECT_EQ(print_value(Type::kI32, 0xffffffff), "-1");
  EXPECT_EQ(print_value(Type::kI32, 0xabcd00000007), "7") << "the upper half is not part of it";
  EXPECT_EQ(print_value(Type::kI64, 0xffffffff), "4294967295");
  EXPECT_EQ(print_value(Type::kI64, uint64_t{1} << 63), "-9223372036854775808");
}

TEST(Values, floats_are_printed_as_people_know_them) {
  EXPECT_EQ(print_value(Type::kF64, f64(1.5)), "1.5");
  EXPECT_EQ(print_value(Type::kF64, f64(-0.0)), "-0");
  EXPECT_EQ(print_value(Type::kF32, f32(0.25f)), "0.25");
  EXPECT_EQ(print_value(Type::kF64, f64(HUGE_VAL)), "inf");
  EXPECT_EQ(print_value(Type::kF32, f32(-INFINITY)), "-inf");
  EXPECT_EQ(print_value(Type::kF64, f64(std::nan(""))), "nan");
}

TEST(Values, what_is_printed_is_parsed_back_to_the_bit) {
  uint64_t random = 8;
  for (int i = 0; i < 50'000; ++i) {
    for (Type t : kTypes) {
      uint64_t bits = sampler::next_random(random);
      // Small numbers, extreme exponents and dense mantissas.
      if (i % 3 == 0) bits >>= sampler::next_random(random) % 64;
      if (!is_wide(t)) bits = static_cast<uint32_t>(bits);
      bool nan = t == Type::kF32 ? std::isnan(std::bit_cast<float>(static_cast<uint32_t>(bits)))
                                 : t == Type::kF64 && std::isnan(std::bit_cast<double>(bits));
      auto back = parse_value(t, print_value(t, bits));
      ASSERT_TRUE(back.has_value()) << type_name(t) << " " << print_value(t, bits);
      ASSERT_TRUE(nan || *back == bits) << type_name(t) << " " << print_value(t, bits);
    }
  }
}

}  // namespace
}  // namespace uptier::tools::tools_values_test
