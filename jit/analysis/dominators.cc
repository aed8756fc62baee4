#include "jit/analysis/dominators.h"

#include <algorithm>
#include <span>
#include <utility>

namespace uptier::jit {
namespace {

std::vector<Block> reverse_postorder(const Function& f) {
  struct Visit {
    Block block;
    std::span<const Edge> left;  // edges that were not yet followed
  };
  std::vector<uint8_t> seen(f.blocks.size());
  std::vector<Block> order;
  order.reserve(f.layout.size());
  std::vector<Visit> stack;
  stack.reserve(f.layout.size());
  stack.push_back({f.entry(), f.successors(f.entry())});
  seen[f.entry().index()] = 1;
  while (!stack.empty()) {
    Visit& v = stack.back();
    if (v.left.empty()) {
      order.push_back(v.block);
      stack.pop_back();
      continue;
    }
    Block to = v.left[0].to;
    v.left = v.left.subspan(1);
    if (std::exchange(seen[to.index()], uint8_t{1}) != 0) continue;
    stack.push_back({to, f.successors(to)});
  }
  std::reverse(order.begin(), order.end());
  return order;
}

constexpr uint32_t kUnknown = UINT32_MAX;

// Works on positions in reverse postorder, where a dominator always has the smaller number.
class Tree {
 public:
  Tree(const Function& f, const std::vector<Block>& order, const std::vector<uint32_t>& position,
       uint64_t free_steps)
      : first_(order.size() + 1), idom_(order.size(), kUnknown) {
    for (Block b : order) {
      for (const Edge& e : f.successors(b)) ++first_[position[e.to.index()]];
    }
    uint32_t total = 0;
    for (uint32_t& n : first_) n = total += n;
    preds_.resize(total);
    steps_left_ = free_steps == 0 ? 1 : free_steps + kStepsPerEdge * total;
    for (uint32_t i = 0; i < order.size(); ++i) {
      for (const Edge& e : f.successors(order[i])) preds_[--first_[position[e.to.index()]]] = i;
    }
  }

  // Returns the immediate dominators. The first pass uses forward edges only. A back edge to a
  // dominator of its source changes nothing: every path to it has passed its target before.
  std::vector<uint32_t> run() {
    idom_[0] = 0;
    pass();
    if (!all_back_to_dominators()) {
      while (pass()) {}
    }
    return std::move(idom_);
  }
  // Returns whether the walks were too long: then the result of run() is void.
  bool too_long() const { return steps_left_ == 0; }

  std::span<const uint32_t> preds(uint32_t i) const {
    return std::span(preds_).subspan(first_[i], first_[i + 1] - first_[i]);
  }

 private:
  // For functions from compilers, the walks take only a few steps for each edge.
  static constexpr uint64_t kStepsPerEdge = 64;

  bool step() { return steps_left_ != 0 && --steps_left_ != 0; }

  bool pass() {
    bool changed = false;
    for (uint32_t i = 1; i < idom_.size() && !too_long(); ++i) {
      uint32_t best = kUnknown;
      for (uint32_t p : preds(i)) {
        if (idom_[p] == kUnknown) continue;
        if (best == kUnknown) best = p;
        for (uint32_t other = p; other != best && step();) {
          uint32_t& later = other > best ? other : best;
          later = idom_[later];
        }
      }
      changed |= best != idom_[i];
      idom_[i] = best;
    }
    return changed;
  }

  bool all_back_to_dominators() {
    for (uint32_t i = 1; i < idom_.size() && !too_long(); ++i) {
      for (uint32_t p : preds(i)) {
        if (p < i) continue;
        while (p > i && step()) p = idom_[p];
        if (p != i && !too_long()) return false;
      }
    }
    return true;
  }

  std::vector<uint32_t> first_,
      preds_;  // the predecessors of i: preds_[first_[i]], up to first_[i + 1]
  std::vector<uint32_t> idom_;
  uint64_t steps_left_ = 0;
};

// Works on preorder numbers of a walk over the graph, where ancestors have smaller numbers.
class LengauerTarjan {
 public:
  LengauerTarjan(const Function& f, const std::vector<Block>& order,
                 const std::vector<uint32_t>& position, const Tree& tree)
      : order_(order), position_(position), tree_(tree), number_(order.size(), kUnknown) {
    walk(f);
    auto count = static_cast<uint32_t>(vertex_.size());
    semi_.resize(count);
    for (uint32_t i = 0; i < count; ++i) semi_[i] = i;
    label_ = semi_;
    ancestor_.assign(count, kUnknown);
    idom_.assign(count, 0);
    buckets_.resize(count);
  }

  // Returns the immediate dominators by position in reverse postorder.
  std::vector<uint32_t> run() {
    for (auto i = static_cast<uint32_t>(vertex_.size()); i-- > 1;) {
      for (uint32_t p : tree_.preds(vertex_[i])) {
        semi_[i] = std::min(semi_[i], semi_[evaluate(number_[p])]);
      }
      buckets_[semi_[i]].push_back(i);
      ancestor_[i] = parent_[i];
      for (uint32_t v : std::exchange(buckets_[parent_[i]], {})) {
        uint32_t u = evaluate(v);
        idom_[v] = semi_[u] < semi_[v] ? u : parent_[i];
      }
    }
    std::vector<uint32_t> by_position(vertex_.size());
    for (uint32_t i = 1; i < vertex_.size(); ++i) {
      if (idom_[i] != semi_[i]) idom_[i] = idom_[idom_[i]];
      by_position[vertex_[i]] = vertex_[idom_[i]];
    }
    return by_position;
  }

 private:
  void walk(const Function& f) {
    struct Visit {
      uint32_t number;
      std::span<const Edge> left;
    };
    std::vector<Visit> stack;
    auto visit = [&](uint32_t at, uint32_t parent) {
      number_[at] = static_cast<uint32_t>(vertex_.size());
      vertex_.push_back(at);
      parent_.push_back(parent);
      stack.push_back({number_[at], f.successors(order_[at])});
    };
    visit(0, 0);
    while (!stack.empty()) {
      Visit& v = stack.back();
      if (v.left.empty()) {
        stack.pop_back();
        continue;
      }
      uint32_t to = position_[v.left[0].to.index()], from = v.number;
      v.left = v.left.subspan(1);
      if (number_[to] == kUnknown) visit(to, from);
    }
  }

  // Returns the vertex with the least semidominator on the linked path upwards, and compresses the
  // path.
  uint32_t evaluate(uint32_t v) {
    if (ancestor_[v] == kUnknown) return v;
    path_.clear();
    for (uint32_t at = v; ancestor_[ancestor_[at]] != kUnknown; at = ancestor_[at]) {
      path_.push_back(at);
    }
    for (size_t n = path_.size(); n-- > 0;) {
      uint32_t at = path_[n], above = ancestor_[at];
      if (semi_[label_[above]] < semi_[label_[at]]) label_[at] = label_[above];
      ancestor_[at] = ancestor_[above];
    }
    return label_[v];
  }

  const std::vector<Block>& order_;
  const std::vector<uint32_t>& position_;
  const Tree& tree_;
  std::vector<uint32_t> number_;                          // by position
  std::vector<uint32_t> vertex_, parent_;                 // by number: position, number
  std::vector<uint32_t> semi_, label_, ancestor_, idom_;  // by number
  std::vector<std::vector<uint32_t>> buckets_;
  std::vector<uint32_t> path_;
};

}  // namespace

Dominators compute_dominators(const Function& f, uint64_t free_steps) {
  Dominators d;
  d.order = reverse_postorder(f);
  std::vector<uint32_t> position(f.blocks.size(), kUnknown);
  for (uint32_t i = 0; i < d.order.size(); ++i) position[d.order[i].index()] = i;
  Tree tree(f, d.order, position, free_steps);
  std::vector<uint32_t> idom = tree.run();
  if (tree.too_long()) idom = LengauerTarjan(f, d.order, position, tree).run();

  // Sizes of subtrees, children before parents; then each child takes its part of the interval.
  auto count = static_cast<uint32_t>(d.order.size());
  std::vector<uint32_t> size(count, 1), enter(count), taken(count);
  for (uint32_t i = count; i-- > 1;) size[idom[i]] += size[i];
  enter[0] = 1;
  for (uint32_t i = 1; i < count; ++i) {
    enter[i] = enter[idom[i]] + 1 + taken[idom[i]];
    taken[idom[i]] += size[i];
  }
  d.idom.resize(f.blocks.size());
  d.enter.resize(f.blocks.size());
  d.leave.resize(f.blocks.size());
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t b = d.order[i].index();
    if (i != 0) d.idom[b] = d.order[idom[i]];
    d.enter[b] = enter[i];
    d.leave[b] = enter[i] + size[i] - 1;
  }
  return d;
}

}  // namespace uptier::jit
