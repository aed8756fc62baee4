#include "profile/data/cluster_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace uptier::profile::cluster_calls_test {
namespace {

using Clusters = std::vector<std::vector<uint32_t>>;

TEST(ClusterCalls, callees_follow_the_caller_that_calls_them_most) {
  //  0 -10-> 1 -9-> 2,  3 -20-> 2
  std::vector<PlacedFunction> f = {{100, 10}, {90, 10}, {80, 10}, {70, 10}};
  std::vector<CallArc> arcs = {{0, 1, 10}, {1, 2, 9}, {3, 2, 20}};
  EXPECT_EQ(cluster_calls(f, arcs, 1000), (Clusters{{0, 1}, {3, 2}}));
}

TEST(ClusterCalls, a_chain_is_one_cluster) {
  std::vector<PlacedFunction> f = {{10, 10}, {20, 10}, {30, 10}};
  std::vector<CallArc> arcs = {{0, 1, 5}, {1, 2, 5}};
  EXPECT_EQ(cluster_calls(f, arcs, 1000), (Clusters{{0, 1, 2}}));
}

TEST(ClusterCalls, a_cluster_takes_no_more_bytes_than_it_may) {
  std::vector<PlacedFunction> f = {{30, 60}, {20, 30}, {10, 30}};
  std::vector<CallArc> arcs = {{0, 1, 5}, {0, 2, 4}};
  EXPECT_EQ(cluster_calls(f, arcs, 100), (Clusters{{0, 1}, {2}}));
}

TEST(ClusterCalls, what_is_dense_takes_nothing_in_that_thins_it_out) {
  std::vector<PlacedFunction> f = {{1000, 10}, {1, 1000}};
  std::vector<CallArc> arcs = {{0, 1, 5}};
  EXPECT_EQ(cluster_calls(f, arcs, 1 << 20), (Clusters{{0}, {1}}));
}

TEST(ClusterCalls, the_densest_comes_first_and_ties_keep_their_order) {
  std::vector<PlacedFunction> f = {{10, 10}, {50, 10}, {10, 10}, {0, 10}};
  EXPECT_EQ(cluster_calls(f, {}, 1000), (Clusters{{1}, {0}, {2}, {3}}));
}

TEST(ClusterCalls, cycles_and_arcs_that_name_nothing_do_no_harm) {
  std::vector<PlacedFunction> f = {{10, 10}, {10, 10}};
  std::vector<CallArc> arcs = {{0, 0, 99}, {0, 1, 3}, {1, 0, 3}, {7, 0, 9}, {0, 7, 9}, {1, 0, 0}};
  EXPECT_EQ(cluster_calls(f, arcs, 1000), (Clusters{{1, 0}}));
  EXPECT_TRUE(cluster_calls({}, arcs, 1000).empty());
}

TEST(ClusterCalls, of_any_graph_it_makes_a_permutation_in_bounds_and_the_same_again) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    size_t count = random() % 40;
    std::vector<PlacedFunction> f(count);
    for (auto& p : f) p = {static_cast<double>(random() % 1000), random() % 500};
    std::vector<CallArc> arcs(random() % 200);
    for (auto& a : arcs) {
      a = {static_cast<uint32_t>(random() % 45), static_cast<uint32_t>(random() % 45),
           random() % 50};
    }
    Clusters c = cluster_calls(f, arcs, 1000);
    EXPECT_EQ(c, cluster_calls(f, arcs, 1000));
    std::vector<uint32_t> all;
    for (const auto& cluster : c) {
      uint64_t bytes = 0;
      for (uint32_t m : cluster) bytes += std::max<uint64_t>(f[m].bytes, 1);
      if (cluster.size() > 1) { EXPECT_LE(bytes, 1000u); }
      all.insert(all.end(), cluster.begin(), cluster.end());
    }
    std::ranges::sort(all);
    for (uint32_t n = 0; n < count; ++n) ASSERT_EQ(all.at(n), n);
    ASSERT_EQ(all.size(), count);
  }
}

}  // namespace
}  // namespace uptier::profile::cluster_calls_test
