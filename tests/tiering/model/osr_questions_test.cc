// When a frame that is left behind asks: at once, and then ever less often.
#include <gtest/gtest.h>

#include <cstdint>

#include "tiering/model/method_shape.h"

namespace uptier::tiering::osr_questions_test {
namespace {

TEST(OsrQuestions, are_few_and_none_comes_more_than_a_quarter_too_late) {
  OsrQuestions q;
  EXPECT_TRUE(q.arrive()) << "the first frame asks at once";
  uint32_t asked = 1;
  uint64_t last = 1;
  for (uint64_t n = 2; n <= 1'000'000; ++n) {
    if (!q.arrive()) continue;
    ++asked;
    EXPECT_LE(n, last + last / 4 + 1);
    last = n;
  }
  EXPECT_GE(last, 750'000u) << "they do not end";
  EXPECT_LE(asked, 70u);
}

TEST(OsrQuestions, begin_anew_once_code_was_requested) {
  OsrQuestions q;
  for (uint32_t n = 0; n < 1000; ++n) q.arrive();
  q.begin_anew();
  EXPECT_TRUE(q.arrive());
}

}  // namespace
}  // namespace uptier::tiering::osr_questions_test
