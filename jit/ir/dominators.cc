#include "jit/ir/dominators.h"

#include <algorithm>
#include <span>
#include <utility>

namespace uptier::jit {
namespace {

std::vector<Block> reverse_postorder(const Function& f) {
  struct Visit {
    Block block;
    std::span<const Edge> left;  // edges that were not followed yet
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
  Tree(const Function& f, const std::vector<Block>& order, const std::vector<uint32_t>& position)
      : first_(order.size() + 1), idom_(order.size(), kUnknown) {
    for (Block b : order) {
      for (const Edge& e : f.successors(b)) ++first_[position[e.to.index()]];
    }
    uint32_t total = 0;
    for (uint32_t& n : first_) n = total += n;
    preds_.resize(total);
    for (uint32_t i = 0; i < order.size(); ++i) {
      for (const Edge& e : f.successors(order[i])) preds_[--first_[position[e.to.index()]]] = i;
    }
  }

  // Returns the immediate dominators. The first pass goes by what leads forward. What leads back to
  // a dominator of where it comes from changes nothing: every way there has been through it before.
  std::vector<uint32_t> run() {
    idom_[0] = 0;
    pass();
    if (!all_back_to_dominators()) {
      while (pass()) {}
    }
    return std::move(idom_);
  }

 private:
  std::span<const uint32_t> preds(uint32_t i) const {
    return std::span(preds_).subspan(first_[i], first_[i + 1] - first_[i]);
  }

  bool pass() {
    bool changed = false;
    for (uint32_t i = 1; i < idom_.size(); ++i) {
      uint32_t best = kUnknown;
      for (uint32_t p : preds(i)) {
        if (idom_[p] == kUnknown) continue;
        if (best == kUnknown) best = p;
        for (uint32_t other = p; other != best;) {
          uint32_t& later = other > best ? other : best;
          later = idom_[later];
        }
      }
      changed |= best != idom_[i];
      idom_[i] = best;
    }
    return changed;
  }

  bool all_back_to_dominators() const {
    for (uint32_t i = 1; i < idom_.size(); ++i) {
      for (uint32_t p : preds(i)) {
        if (p < i) continue;
        while (p > i) p = idom_[p];
        if (p != i) return false;
      }
    }
    return true;
  }

  std::vector<uint32_t> first_,
      preds_;  // the predecessors of i: preds_[first_[i]], up to first_[i + 1]
  std::vector<uint32_t> idom_;
};

}  // namespace

Dominators compute_dominators(const Function& f) {
  Dominators d;
  d.order = reverse_postorder(f);
  std::vector<uint32_t> position(f.blocks.size(), kUnknown);
  for (uint32_t i = 0; i < d.order.size(); ++i) position[d.order[i].index()] = i;
  std::vector<uint32_t> idom = Tree(f, d.order, position).run();

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
