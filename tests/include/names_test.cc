#include <gtest/gtest.h>

#include <string>

#include "uptier/ids.h"
#include "uptier/result.h"

namespace uptier::names_test {
namespace {

TEST(Names, types_read_as_in_the_text_form) {
  EXPECT_STREQ(type_name(Type::kNone), "none");
  EXPECT_STREQ(type_name(Type::kI32), "i32");
  EXPECT_STREQ(type_name(Type::kI64), "i64");
  EXPECT_STREQ(type_name(Type::kF32), "f32");
  EXPECT_STREQ(type_name(Type::kF64), "f64");
  EXPECT_STREQ(type_name(Type::kRef), "ref");
}

TEST(Names, tiers_and_copies_have_the_vocabulary_words) {
  EXPECT_STREQ(tier_name(Tier::kHost), "host");
  EXPECT_STREQ(tier_name(Tier::kBaseline), "baseline");
  EXPECT_STREQ(tier_name(Tier::kOptimized), "optimized");
  EXPECT_STREQ(copy_name(Copy::kPlain), "plain");
  EXPECT_STREQ(copy_name(Copy::kInstrumented), "instrumented");
}

TEST(Names, every_error_code_has_a_name_of_its_own) {
  EXPECT_STREQ(error_code_name(ErrorCode::kInvalidArgument), "invalid argument");
  const int last = static_cast<int>(ErrorCode::kForked);
  for (int a = 0; a <= last; ++a) {
    const std::string name = error_code_name(static_cast<ErrorCode>(a));
    EXPECT_NE(name, "?");
    for (int b = 0; b < a; ++b) EXPECT_NE(name, error_code_name(static_cast<ErrorCode>(b)));
  }
}

TEST(Names, values_outside_the_enum_are_named_too) {
  EXPECT_STREQ(type_name(static_cast<Type>(200)), "?");
  EXPECT_STREQ(error_code_name(static_cast<ErrorCode>(200)), "?");
}

TEST(Ids, default_is_none_and_index_zero_is_valid) {
  EXPECT_FALSE(Value().valid());
  EXPECT_EQ(Value(), Value::none());
  EXPECT_TRUE(Value(0).valid());
  EXPECT_LT(Value(1), Value(2));
}

TEST(Result, holds_a_value_or_an_error) {
  Result<std::string> good = std::string("abc");
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->size(), 3u);
  Result<std::string> bad = Error{ErrorCode::kNotFound, "no such method"};
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(bad.error().message, "no such method");
}

TEST(Result, of_an_error_like_type_still_tells_them_apart) {
  Status ok;
  EXPECT_TRUE(ok.ok());
  Status failed = Error{ErrorCode::kIo, "disk"};
  EXPECT_FALSE(failed.ok());
}

}  // namespace
}  // namespace uptier::names_test
