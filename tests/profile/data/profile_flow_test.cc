#include "profile/data/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace uptier::profile::profile_flow_test {
namespace {

// A connected random graph: every block can be reached and left. Some edges are parallel, some are
// self loops, some lead outside.
class FlowMaker {
 public:
  explicit FlowMaker(uint64_t seed) : random_(seed) {}

  uint32_t below(uint64_t bound) { return static_cast<uint32_t>(random_() % bound); }

  FlowGraph graph() {
    FlowGraph g;
    g.blocks = 1 + below(12);
    add(g, 0, 1);
    for (uint32_t v = 2; v <= g.blocks; ++v) add(g, 1 + below(v - 1), v);
    for (uint32_t v = 1; v <= g.blocks; ++v) add(g, v, below(v));  // leads towards the outside
    for (uint32_t i = below(20); i > 0; --i) add(g, below(g.blocks + 1), below(g.blocks + 1));
    std::ranges::shuffle(g.edges, random_);
    return g;
  }

  // Counts every edge during some walks from the outside and back.
  std::vector<uint64_t> walk(const FlowGraph& g) {
    std::vector<uint64_t> counts(g.edges.size());
    for (uint32_t walks = below(30); walks > 0; --walks) {
      uint32_t at = 0;
      do {
        const size_t edge = leaving(g, at);
        ++counts[edge];
        at = g.edges[edge].to;
      } while (at != 0);
    }
    return counts;
  }

  // Returns a random edge that leaves `from`; all are equally likely.
  size_t leaving(const FlowGraph& g, uint32_t from) {
    std::vector<size_t> out;
    for (size_t i = 0; i < g.edges.size(); ++i) {
      if (g.edges[i].from == from) out.push_back(i);
    }
    return out[below(out.size())];
  }

 private:
  void add(FlowGraph& g, uint32_t from, uint32_t to) {
    g.edges.push_back({from, to, below(4) * 10, below(6) == 0});
  }

  std::mt19937_64 random_;
};

// Keeps the counters of the chords; the rest is unknown.
std::vector<uint64_t> only_chords(const std::vector<bool>& chords, std::vector<uint64_t> counts) {
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = chords[i] ? counts[i] : 0xdead;
  return counts;
}

std::vector<uint64_t> inflow(const FlowGraph& g, const std::vector<uint64_t>& counts) {
  std::vector<uint64_t> blocks(g.blocks);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (g.edges[i].to != 0) blocks[g.edges[i].to - 1] += counts[i];
  }
  return blocks;
}

// Finds the weight of the best spanning forest by trying every set of edges; for small graphs.
uint64_t best_forest(const FlowGraph& g) {
  uint64_t best = 0;
  for (uint32_t set = 0; set < (1u << g.edges.size()); ++set) {
    std::vector<uint32_t> component(g.blocks + 1);
    std::iota(component.begin(), component.end(), 0u);
    uint64_t weight = 0;
    bool forest = true;
    for (size_t i = 0; i < g.edges.size() && forest; ++i) {
      if ((set >> i & 1) == 0) continue;
      const uint32_t a = component[g.edges[i].from], b = component[g.edges[i].to];
      forest = a != b && !g.edges[i].external;
      std::ranges::replace(component, a, b);
      weight += g.edges[i].weight;
    }
    if (forest) best = std::max(best, weight);
  }
  return best;
}

TEST(Flow, counts_of_walks_follow_from_their_chords) {
  FlowMaker maker(1);
  for (int round = 0; round < 5000; ++round) {
    const FlowGraph g = maker.graph();
    const std::vector<bool> chords = choose_chords(g);
    const std::vector<uint64_t> walked = maker.walk(g);
    const FlowCounts counts = reconstruct(g, chords, only_chords(chords, walked));
    ASSERT_EQ(counts.edges, walked);
    ASSERT_EQ(counts.blocks, inflow(g, walked));
    ASSERT_FALSE(counts.clamped);
    ASSERT_TRUE(imbalanced_blocks(g, counts).empty());
  }
}

TEST(Flow, tree_has_the_greatest_weight_and_no_external_edge) {
  FlowMaker maker(2);
  for (int done = 0; done < 100;) {
    const FlowGraph g = maker.graph();
    if (g.edges.size() > 12) continue;
    ++done;
    const std::vector<bool> chords = choose_chords(g);
    uint64_t weight = 0;
    for (size_t i = 0; i < g.edges.size(); ++i) {
      if (g.edges[i].external) { ASSERT_TRUE(chords[i]); }
      weight += chords[i] ? 0 : g.edges[i].weight;
    }
    ASSERT_EQ(weight, best_forest(g));
  }
}

TEST(Flow, hot_path_of_a_loop_carries_no_counter) {
  // outside -> 1 -> 2 (header) -> 3 (body) -> 2, 2 -> 4 -> outside
  const FlowGraph g{4,
                    {{0, 1, 1, false},
                     {1, 2, 1, false},
                     {2, 3, 100, false},
                     {3, 2, 100, false},
                     {2, 4, 1, false},
                     {4, 0, 1, false}}};
  const std::vector<bool> chords = choose_chords(g);
  // One of the two hot edges must be counted, and one of the cold ones; ties go to the lower index.
  EXPECT_EQ(chords, (std::vector<bool>{false, false, false, true, false, true}));
  const std::vector<uint64_t> counted = {0, 0, 0, 90, 0, 10};
  EXPECT_EQ(reconstruct(g, chords, counted).blocks, (std::vector<uint64_t>{10, 100, 90, 10}));
}

TEST(Flow, parallel_edges_and_self_loops_are_counted_apart) {
  const FlowGraph g{
      1, {{0, 1, 1, false}, {1, 1, 9, false}, {1, 0, 5, false}, {1, 0, 5, false}, {0, 1, 7, true}}};
  const std::vector<bool> chords = choose_chords(g);
  EXPECT_EQ(chords, (std::vector<bool>{true, true, false, true, true}));
  const FlowCounts counts = reconstruct(g, chords, std::vector<uint64_t>{3, 50, 0, 4, 6});
  EXPECT_EQ(counts.edges, (std::vector<uint64_t>{3, 50, 5, 4, 6}));
  EXPECT_EQ(counts.blocks, (std::vector<uint64_t>{59}));
}

TEST(Flow, graph_without_edges_or_blocks_is_fine) {
  EXPECT_EQ(reconstruct({}, {}, {}), (FlowCounts{}));
  EXPECT_EQ(reconstruct({2, {}}, {}, {}), (FlowCounts{{0, 0}, {}, false}));
  EXPECT_TRUE(choose_chords({}).empty());
}

TEST(Flow, frame_in_flight_clamps_at_zero_and_never_wraps) {
  // A walk that has entered block 1 and is still inside: the return edge is counted, the entry is
  // not yet.
  const FlowGraph g{2, {{0, 1, 0, true}, {1, 2, 5, false}, {2, 0, 0, true}}};
  const FlowCounts counts = reconstruct(g, choose_chords(g), std::vector<uint64_t>{0, 0, 3});
  EXPECT_TRUE(counts.clamped || !imbalanced_blocks(g, counts).empty());
  for (const uint64_t count : counts.edges) EXPECT_LE(count, 3u);
  // Entered but never left: all edges out of block 2 are counted ones, so nothing is clamped.
  const FlowGraph line{1, {{0, 1, 1, true}, {1, 0, 1, false}, {1, 0, 1, true}}};
  const FlowCounts stuck = reconstruct(line, choose_chords(line), std::vector<uint64_t>{1, 0, 2});
  EXPECT_EQ(stuck.edges, (std::vector<uint64_t>{1, 0, 2}));
  EXPECT_TRUE(stuck.clamped);
  EXPECT_EQ(imbalanced_blocks(line, stuck), (std::vector<uint32_t>{1}));
}

TEST(Flow, walks_cut_short_stay_within_one_of_the_truth_for_each_frame) {
  FlowMaker maker(3);
  for (int round = 0; round < 2000; ++round) {
    const FlowGraph g = maker.graph();
    const std::vector<bool> chords = choose_chords(g);
    std::vector<uint64_t> walked = maker.walk(g);
    uint32_t at = 0;  // one more walk, which has not ended
    for (uint32_t steps = maker.below(5); steps > 0; --steps) {
      const size_t edge = maker.leaving(g, at);
      ++walked[edge];
      at = g.edges[edge].to;
    }
    const FlowCounts counts = reconstruct(g, chords, only_chords(chords, walked));
    for (size_t i = 0; i < walked.size(); ++i) {
      ASSERT_LE(counts.edges[i], walked[i] + 1);
      ASSERT_GE(counts.edges[i] + 1, walked[i]);
    }
  }
}

TEST(Flow, greatest_counts_stop_instead_of_wrapping) {
  const FlowGraph g{1, {{0, 1, 1, true}, {0, 1, 1, true}, {1, 0, 1, false}}};
  const std::vector<uint64_t> counted = {UINT64_MAX, UINT64_MAX, 0};
  const FlowCounts counts = reconstruct(g, choose_chords(g), counted);
  EXPECT_EQ(counts.edges[2], UINT64_MAX);
  EXPECT_EQ(counts.blocks[0], UINT64_MAX);
  EXPECT_TRUE(counts.clamped);
}

TEST(Flow, edges_without_a_spanning_tree_are_said_not_guessed) {
  const FlowGraph g{1, {{0, 1, 1, false}, {1, 0, 1, false}}};
  const FlowCounts counts = reconstruct(g, {false, false}, std::vector<uint64_t>{5, 5});
  EXPECT_EQ(counts.edges, (std::vector<uint64_t>{0, 0}));
  EXPECT_TRUE(counts.clamped);
}

TEST(Flow, large_graphs_take_linear_time) {
  // A chain of a million blocks with a chord at each: quadratic work would not finish.
  constexpr uint32_t kBlocks = 1'000'000;
  FlowGraph g;
  g.blocks = kBlocks;
  for (uint32_t v = 0; v < kBlocks; ++v) g.edges.push_back({v, v + 1, 1, false});
  g.edges.push_back({kBlocks, 0, 0, false});
  const std::vector<bool> chords = choose_chords(g);
  std::vector<uint64_t> counted(g.edges.size());
  counted.back() = 7;
  const FlowCounts counts = reconstruct(g, chords, counted);
  EXPECT_EQ(counts.edges, std::vector<uint64_t>(g.edges.size(), 7));
}

}  // namespace
}  // namespace uptier::profile::profile_flow_test
