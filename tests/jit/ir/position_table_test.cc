// PositionTable: the positions that a body is described with, and the rules for them.
#include <gtest/gtest.h>

#include "jit/frontend/builder_access.h"
#include "jit/ir/position_table.h"
#include "uptier/builder.h"

namespace uptier::test::position_table_test {
namespace {

using jit::PositionTable;

TEST(PositionTable, finds_exactly_the_locations_that_were_added) {
  PositionTable t;
  const FileId a = t.add_file("a.calc"), b = t.add_file("b.calc");
  EXPECT_EQ(t.add_file("a.calc"), a);
  t.add(30, {b, 3, 1});
  t.add(10, {a, 1, 7});
  t.add(10, {a, 1, 7});
  ASSERT_TRUE(t.finish().ok());
  EXPECT_EQ(t.rows(), 2u);
  EXPECT_EQ(t.find(10), (SourcePositions{{"a.calc", 1, 7, ""}}));
  EXPECT_EQ(t.find(30), (SourcePositions{{"b.calc", 3, 1, ""}}));
  for (uint32_t between : {0u, 9u, 11u, 29u, 31u}) EXPECT_TRUE(t.find(between).empty()) << between;
}

TEST(PositionTable, follows_the_calls_that_the_host_has_inlined) {
  PositionTable t;
  const FileId f = t.add_file("x");
  t.add(1, {f, 10, 0});
  t.add(2, {f, 20, 0, 1});
  t.add(3, {f, 30, 5, 2});
  ASSERT_TRUE(t.finish().ok());
  EXPECT_EQ(t.find(3), (SourcePositions{{"x", 30, 5, ""}, {"x", 20, 0, ""}, {"x", 10, 0, ""}}));
}

std::string error_of(std::initializer_list<std::pair<uint32_t, Position>> rows) {
  PositionTable t;
  t.add_file("x");
  for (const auto& [location, at] : rows) t.add(location, at);
  const Status s = t.finish();
  return s.ok() ? "" : s.error().message;
}

TEST(PositionTable, refuses_what_has_two_answers_or_none) {
  const FileId f(0);
  EXPECT_EQ(error_of({{1, {f, 1, 0}}, {2, {f, 2, 0}}, {1, {f, 3, 0}}}),
            "location 1 has two positions");
  EXPECT_EQ(error_of({{1, {f, 1, 0, 5}}}),
            "location 1 is inlined at location 5, which has no position");
  EXPECT_NE(error_of({{1, {f, 1, 0, 2}}, {2, {f, 2, 0, 1}}}).find("in a cycle"), std::string::npos);
}

// The description of a body is refused, as with any misuse of the builder.
TEST(PositionTable, a_wrong_table_fails_the_build) {
  const auto build = [](auto add) {
    FunctionBuilder b({{Type::kI64}, Type::kI64}, "f");
    add(b);
    b.ret(b.param(0));
    Result<jit::Function> f = BuilderAccess::finish_verified(b);
    return f.ok() ? "" : f.error().message;
  };
  EXPECT_EQ(build([](FunctionBuilder& b) { b.add_position(4, {b.add_file("x"), 1, 1}); }), "");
  EXPECT_NE(build([](FunctionBuilder& b) {
              b.add_position(4, {FileId(0), 1, 1});
            }).find("a position is in a file that add_file did not return"),
            std::string::npos);
  EXPECT_NE(build([](FunctionBuilder& b) {
              b.add_position(4, {b.add_file("x"), 1, 1});
              b.add_position(4, {b.add_file("x"), 2, 1});
            }).find("location 4 has two positions"),
            std::string::npos);
}

}  // namespace
}  // namespace uptier::test::position_table_test
