#include "profile/data/flow.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "profile/base/numbers.h"

namespace uptier::profile {
namespace {

// The connected components so far; halves paths during look-ups (union-find).
class Components {
 public:
  explicit Components(size_t vertices) : parent_(vertices) {
    std::iota(parent_.begin(), parent_.end(), uint32_t{0});
  }

  // Returns whether the two were separate.
  bool join(uint32_t a, uint32_t b) {
    a = root(a);
    b = root(b);
    parent_[a] = b;
    return a != b;
  }

 private:
  uint32_t root(uint32_t v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }

  std::vector<uint32_t> parent_;
};

// Removes leaves from the spanning forest: the one unknown edge of a leaf is determined by its
// other edges.
//
// For the tree edges at a vertex, only their number and the xor of their indices are kept. At a
// leaf, one edge is left, so the xor is its index.
class Stripper {
 public:
  Stripper(const FlowGraph& graph, FlowCounts& counts)
      : graph_(graph),
        counts_(counts),
        surplus_(graph.blocks + size_t{1}),
        degree_(graph.blocks + size_t{1}),
        edges_(graph.blocks + size_t{1}) {}

  // Before run(), every chord is settled with its count, and every other edge is added.
  void settle(size_t edge, uint64_t count) {
    counts_.edges[edge] = count;
    surplus_[graph_.edges[edge].to] += count;
    surplus_[graph_.edges[edge].from] -= count;
  }
  void add(size_t edge) {
    for (const uint32_t v : {graph_.edges[edge].from, graph_.edges[edge].to}) {
      ++degree_[v];
      edges_[v] ^= edge;
    }
  }

  void run() {
    // Vertex 0 is never removed: every tree has another leaf.
    for (uint32_t v = 1; v <= graph_.blocks; ++v) strip(v);
    const bool rest = std::ranges::any_of(degree_, [](uint32_t degree) { return degree != 0; });
    counts_.clamped |= rest;  // the edges that are not chords contain a cycle
  }

 private:
  // Removes `v` if it is a leaf, and then vertices that become leaves, along one path. If the path
  // stops before a vertex, that vertex is reached again from its last child.
  void strip(uint32_t v) {
    while (v != 0 && degree_[v] == 1) {
      const size_t edge = edges_[v];
      const FlowEdge& e = graph_.edges[edge];
      const uint32_t other = e.from == v ? e.to : e.from;
      settle(edge, in_range(e.from == v ? surplus_[v] : -surplus_[v]));
      for (const uint32_t end : {v, other}) {
        --degree_[end];
        edges_[end] ^= edge;
      }
      v = other;
    }
  }

  uint64_t in_range(Wide count) {
    const Wide clamped = std::clamp<Wide>(count, 0, kMaxCount);
    counts_.clamped |= clamped != count;
    return static_cast<uint64_t>(clamped);
  }

  const FlowGraph& graph_;
  FlowCounts& counts_;
  std::vector<Wide> surplus_;  // known inflow minus known outflow, by vertex; never wraps
  std::vector<uint32_t> degree_;
  std::vector<size_t> edges_;
};

}  // namespace

std::vector<bool> choose_chords(const FlowGraph& graph) {
  std::vector<size_t> order(graph.edges.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&graph](size_t a, size_t b) {
    return graph.edges[a].weight > graph.edges[b].weight;
  });
  Components components(graph.blocks + size_t{1});
  std::vector<bool> chords(graph.edges.size(), true);
  for (const size_t i : order) {
    const FlowEdge& edge = graph.edges[i];
    assert(edge.from <= graph.blocks && edge.to <= graph.blocks);
    if (!edge.external && components.join(edge.from, edge.to)) chords[i] = false;
  }
  return chords;
}

FlowCounts reconstruct(const FlowGraph& graph, const std::vector<bool>& chords,
                       std::span<const uint64_t> chord_counts_by_edge) {
  assert(chords.size() == graph.edges.size());
  assert(chord_counts_by_edge.size() == graph.edges.size());
  FlowCounts counts;
  counts.blocks.resize(graph.blocks);
  counts.edges.resize(graph.edges.size());
  Stripper stripper(graph, counts);
  for (size_t i = 0; i < graph.edges.size(); ++i) {
    if (chords[i]) {
      stripper.settle(i, chord_counts_by_edge[i]);
    } else {
      stripper.add(i);
    }
  }
  stripper.run();
  for (size_t i = 0; i < graph.edges.size(); ++i) {
    const uint32_t to = graph.edges[i].to;
    if (to == 0) continue;
    counts.clamped |= add_saturating(counts.blocks[to - 1], counts.edges[i]);
  }
  return counts;
}

std::vector<uint32_t> imbalanced_blocks(const FlowGraph& graph, const FlowCounts& counts) {
  std::vector<Wide> surplus(graph.blocks + size_t{1});
  for (size_t i = 0; i < graph.edges.size(); ++i) {
    surplus[graph.edges[i].to] += counts.edges[i];
    surplus[graph.edges[i].from] -= counts.edges[i];
  }
  std::vector<uint32_t> result;
  for (uint32_t v = 1; v <= graph.blocks; ++v) {
    if (surplus[v] != 0) result.push_back(v);
  }
  return result;
}

}  // namespace uptier::profile
