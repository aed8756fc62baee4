#include <gtest/gtest.h>

#include "tiering/observe/settled.h"

namespace uptier::tiering {
namespace {

using profile::FlowEdge;

// 1 -> 2 | 3, both -> 4.
const std::vector<FlowEdge> kDiamond{
    {1, 2, 0, false}, {1, 3, 0, false}, {2, 4, 0, false}, {3, 4, 0, false}};

std::vector<double> fitted(const std::vector<FlowEdge>& graph, std::vector<double> blocks,
                           std::vector<double> edges) {
  fit_edges(graph, blocks, edges);
  return edges;
}

TEST(FitEdges, follow_blocks_that_have_one_way_in) {
  std::vector<double> e = fitted(kDiamond, {100, 30, 70, 100}, {5, 5, 1, 1});
  EXPECT_NEAR(e[0], 30, 0.5);
  EXPECT_NEAR(e[1], 70, 0.5);
  EXPECT_NEAR(e[2], 30, 0.5);
  EXPECT_NEAR(e[3], 70, 0.5);
}

TEST(FitEdges, a_way_that_no_sample_took_is_found_from_its_block) {
  std::vector<double> e = fitted(kDiamond, {100, 90, 10, 100}, {0, 50, 0, 50});
  EXPECT_NEAR(e[0], 90, 1);
  EXPECT_NEAR(e[1], 10, 1);
}

TEST(FitEdges, keep_the_prior_where_blocks_do_not_decide) {
  // Two consecutive switches over the same two blocks: many fits exist, so the prior decides.
  std::vector<FlowEdge> graph{
      {1, 3, 0, false}, {1, 4, 0, false}, {2, 3, 0, false}, {2, 4, 0, false}};
  std::vector<double> e = fitted(graph, {50, 50, 50, 50}, {9, 1, 1, 9});
  EXPECT_NEAR(e[0], 45, 0.5);
  EXPECT_NEAR(e[1], 5, 0.5);
}

TEST(FitEdges, nothing_that_never_ran_gets_a_count) {
  std::vector<double> e = fitted(kDiamond, {10, 10, 0, 10}, {0, 0, 0, 0});
  EXPECT_NEAR(e[0], 10, 0.1);
  EXPECT_EQ(e[3], 0);
}

}  // namespace
}  // namespace uptier::tiering
