// The law of block probes as a comparison of counts, and what a body does not know.
#include "jit/probes/probe_law.h"

#include <gtest/gtest.h>

#include "jit/frontend/parse.h"
#include "jit/ir/tally.h"

namespace uptier::jit {
namespace {

TEST(ProbeLaw, equal_counts_keep_it) {
  const ProbeLaw law = check_probe_law({{3, 0}, {7}}, {{3, 0}, {7}}, {{false, false}, {true}});
  EXPECT_TRUE(law.holds);
  EXPECT_EQ(law.lost, 0u);
}

TEST(ProbeLaw, an_unknown_block_may_have_too_few_executions_but_never_too_many) {
  const BlockSet second = {{false, true}};
  const ProbeLaw fewer = check_probe_law({{3, 10}}, {{3, 4}}, second);
  EXPECT_TRUE(fewer.holds);
  EXPECT_EQ(fewer.lost, 6u);
  const ProbeLaw more = check_probe_law({{3, 10}}, {{3, 11}}, second);
  EXPECT_FALSE(more.holds);
  EXPECT_EQ(more.site, 2u);
  EXPECT_EQ(more.text(), "block 2 has 11 of 10 executions");
}

TEST(ProbeLaw, a_known_block_with_too_few_executions_breaks_it) {
  const ProbeLaw law = check_probe_law({{1}, {3, 10}}, {{1}, {2, 9}}, {{false}, {false, false}});
  EXPECT_FALSE(law.holds);
  EXPECT_EQ(law.method, MethodId(1));
  EXPECT_EQ(law.site, 1u) << "the first one";
  EXPECT_EQ(law.got, 2u);
  EXPECT_EQ(law.want, 3u);
}

TEST(ProbeLaw, blocks_without_a_probe_and_merged_ones_are_unknown) {
  auto module = parse_module(R"(
func @f(i32) -> i32 {
b0(v0: i32):
  branch v0, b1, b2
b1:
  jump b3(v0)
b2:
  jump b3(v0)
b3(v1: i32):
  return v1
}
)",
                             {"test", {}});
  ASSERT_TRUE(module.ok());
  BlockSet unknown = no_blocks(*module);
  add_unknown_blocks(module->functions[0], MethodId(0), unknown);
  EXPECT_EQ(unknown, (BlockSet{{false, false, false, false}}));
  // Block 2 is merged into block 1, and block 3 is gone.
  Function f = module->functions[0];
  for (BlockData& b : f.blocks) {
    std::erase_if(b.insts, [&](InstId i) {
      return is_block_probe(f.inst(i)) && (f.inst(i).aux == 2 || f.inst(i).aux == 3);
    });
  }
  Inst merged{.op = Opcode::kProbe, .aux = 2};
  merged = remnant_of(merged, 0.5f);
  f.append(f.entry(), merged, Type::kNone);
  add_unknown_blocks(f, MethodId(0), unknown);
  EXPECT_EQ(unknown, (BlockSet{{false, true, true, false}}));
}

}  // namespace
}  // namespace uptier::jit
