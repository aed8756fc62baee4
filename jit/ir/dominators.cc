#include "jit/ir/dominators.h"

#include <algorithm>
#include <utility>

namespace uptier::jit {
namespace {

std::vector<Block> reverse_postorder(const Function& f) {
  std::vector<bool> seen(f.blocks.size());
  std::vector<Block> order;
  std::vector<std::pair<Block, uint32_t>> stack{{f.entry(), 0}};
  seen[f.entry().index()] = true;
  while (!stack.empty()) {
    auto& [b, next] = stack.back();
    auto edges = f.successors(b);
    if (next == edges.size()) {
      order.push_back(b);
      stack.pop_back();
      continue;
    }
    Block to = edges[next++].to;
    if (seen[to.index()]) continue;
    seen[to.index()] = true;
    stack.push_back({to, 0});
  }
  std::reverse(order.begin(), order.end());
  return order;
}

constexpr uint32_t kUnknown = UINT32_MAX;

// Works on positions in reverse postorder, where a dominator always has the smaller number.
std::vector<uint32_t> immediate(const Function& f, const std::vector<Block>& order,
                                const std::vector<uint32_t>& position) {
  std::vector<std::vector<uint32_t>> preds(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    for (const Edge& e : f.successors(order[i])) preds[position[e.to.index()]].push_back(i);
  }
  std::vector<uint32_t> idom(order.size(), kUnknown);
  idom[0] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 1; i < order.size(); ++i) {
      uint32_t best = kUnknown;
      for (uint32_t p : preds[i]) {
        if (idom[p] == kUnknown) continue;
        if (best == kUnknown) best = p;
        for (uint32_t other = p; other != best;) {
          uint32_t& later = other > best ? other : best;
          later = idom[later];
        }
      }
      changed |= best != idom[i];
      idom[i] = best;
    }
  }
  return idom;
}

}  // namespace

Dominators compute_dominators(const Function& f) {
  Dominators d;
  d.order = reverse_postorder(f);
  std::vector<uint32_t> position(f.blocks.size(), kUnknown);
  for (uint32_t i = 0; i < d.order.size(); ++i) position[d.order[i].index()] = i;
  std::vector<uint32_t> idom = immediate(f, d.order, position);

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
