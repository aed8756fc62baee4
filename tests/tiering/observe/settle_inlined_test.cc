#include <gtest/gtest.h>

#include "tiering/observe/settled.h"

namespace uptier::tiering {
namespace {

using Blocks = std::map<SiteId, InlinedBlock>;

std::vector<TalliedSum::Block> ran(std::initializer_list<double> executions) {
  std::vector<TalliedSum::Block> blocks;
  for (double n : executions) {
    blocks.emplace_back();
    blocks.back().executions = n;
  }
  return blocks;
}

TEST(SettleInlinedBlocks, tallies_are_taken_as_they_are) {
  Blocks b{{1, {.count = 4, .estimate = 400, .samples = 4}}};
  settle_inlined_blocks(ran({1000, 0, 30}), b);
  EXPECT_EQ(b.at(1).estimate, 1000u);
  EXPECT_FALSE(b.contains(2));
  EXPECT_EQ(b.at(3).estimate, 30u);
  EXPECT_EQ(b.at(3).samples, 1u);
}

TEST(SettleInlinedBlocks, blocks_without_tallies_keep_their_ratio_to_the_others) {
  Blocks b{{1, {.count = 8, .estimate = 8'000'000, .samples = 8}},
           {2, {.count = 2, .estimate = 2'000'000, .samples = 8}},
           {5, {.count = 6, .estimate = 6'000'000, .samples = 8}}};
  settle_inlined_blocks(ran({4000}), b);
  EXPECT_EQ(b.at(1).estimate, 4000u);
  EXPECT_EQ(b.at(2).estimate, 1000u);
  EXPECT_EQ(b.at(5).estimate, 3000u);
}

TEST(SettleInlinedBlocks, if_plain_code_ran_none_of_the_body_the_counts_of_copies_remain) {
  Blocks b{{1, {.count = 8, .estimate = 8'000'000, .samples = 8}},
           {2, {.count = 2, .estimate = 2'000'000, .samples = 8}}};
  settle_inlined_blocks(ran({0}), b);
  EXPECT_EQ(b.at(1).estimate, 8u);
  EXPECT_EQ(b.at(2).estimate, 2u);
}

}  // namespace
}  // namespace uptier::tiering
