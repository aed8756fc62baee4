// The order of blocks, by their counts.
#include <gtest/gtest.h>

#include "jit/frontend/parse.h"
#include "jit/opt/passes.h"

namespace uptier::test::layout_blocks_test {
namespace {

// Returns the blocks of the module's only function in the order that these counts give.
std::string order(const char* text, std::vector<uint64_t> counts) {
  auto module = jit::parse_module(text);
  if (!module.ok()) return module.error().message;
  jit::Function& f = module->functions[0];
  jit::ControlFlow control = jit::analyze_control_flow(f);
  jit::LoopNest loops = jit::find_loops(f, control);
  jit::layout_blocks(f, loops, jit::estimate_frequencies(f, control, loops, counts));
  std::string blocks;
  for (Block b : f.layout) blocks += std::to_string(b.index());
  return blocks;
}

constexpr const char* kEitherWay = R"(
func @either(i32) -> i32 {
b0(v0: i32):
  branch v0, b1, b2
b1:
  jump b3(v0)
b2:
  v1 = const.i32 7
  jump b3(v1)
b3(v2: i32):
  return v2
}
)";

TEST(LayoutBlocks, what_both_ways_lead_to_comes_behind_the_usual_one) {
  EXPECT_EQ(order(kEitherWay, {1000, 900, 100, 1000}), "0132");
  EXPECT_EQ(order(kEitherWay, {1000, 100, 900, 1000}), "0231");
}

constexpr const char* kSkipped = R"(
func @skipped(i32) -> i32 {
b0(v0: i32):
  branch v0, b1, b2(v0)
b1:
  v1 = const.i32 7
  jump b2(v1)
b2(v2: i32):
  return v2
}
)";

// Out of line, the block costs two jumps when it runs; in line, it costs one jump when it is
// skipped.
TEST(LayoutBlocks, what_is_skipped_leaves_the_line_when_most_skip_it) {
  EXPECT_EQ(order(kSkipped, {1000, 500, 1000}), "012");
  EXPECT_EQ(order(kSkipped, {1000, 400, 1000}), "012");
  EXPECT_EQ(order(kSkipped, {1000, 200, 1000}), "021");
}

constexpr const char* kLoop = R"(
func @loop(i32) -> i32 {
b0(v0: i32):
  v1 = const.i32 1
  jump b1(v0)
b1(v2: i32):
  v3 = and.i32 v2, v1
  branch v3, b2, b3
b2:
  v4 = sub.i32 v2, v1
  jump b4(v4)
b3:
  v5 = shr_u.i32 v2, v1
  jump b4(v5)
b4(v6: i32):
  branch v6, b1(v6), b5
b5:
  return v6
}
)";

TEST(LayoutBlocks, a_loop_keeps_what_is_rare_in_it_ahead_of_its_exit) {
  EXPECT_EQ(order(kLoop, {10, 1000, 100, 900, 1000, 10}), "013425");
  EXPECT_EQ(order(kLoop, {10, 1000, 900, 100, 1000, 10}), "012435");
}

}  // namespace
}  // namespace uptier::test::layout_blocks_test
