#include "tiering/policy/compile_rate.h"

#include <gtest/gtest.h>

namespace uptier::tiering {
namespace {

TEST(CompileRate, begins_at_what_is_assumed_and_comes_to_what_is_measured) {
  CompileRate r(2500, true);
  EXPECT_EQ(r.ns(), 2500);
  r.add(2048, 2048 * 500);  // as many as are remembered: half
  EXPECT_DOUBLE_EQ(r.ns(), 1500);
  for (int i = 0; i < 20; ++i) r.add(2048, 2048 * 500);
  EXPECT_NEAR(r.ns(), 500, 0.01);
  EXPECT_EQ(r.compilations(), 21u);
  for (int i = 0; i < 20; ++i) r.add(2048, 2048 * 4000);
  EXPECT_NEAR(r.ns(), 4000, 0.01) << "and follows";
}

TEST(CompileRate, weighs_compilations_by_their_size) {
  CompileRate r(1000, true);
  r.add(10, 10 * 100'000);  // what a compilation costs by itself
  EXPECT_LT(r.ns(), 1500);
  r.add(100'000, 100'000 * 300);
  EXPECT_NEAR(r.ns(), 300, 30);
  r.add(0, 1'000'000);
  EXPECT_NEAR(r.ns(), 300, 30) << "of nothing follows nothing";
}

TEST(CompileRate, stays_where_it_is_when_it_is_not_to_be_measured) {
  CompileRate r(2500, false);
  r.add(1'000'000, 1);
  EXPECT_EQ(r.ns(), 2500);
  EXPECT_EQ(r.compilations(), 0u);
}

}  // namespace
}  // namespace uptier::tiering
