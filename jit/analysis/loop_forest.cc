#include "jit/analysis/loop_forest.h"

#include <algorithm>
#include <functional>

#include "jit/analysis/dominators.h"

namespace uptier::jit {
namespace {

class LoopForestFinder {
 public:
  explicit LoopForestFinder(const Function& f)
      : f_(f),
        dominators_(compute_dominators(f)),
        preds_(f),
        position_(layout_positions(f)),
        seen_(f.blocks.size()) {
    forest_.loops.resize(f.loop_count);
    forest_.innermost.resize(f.blocks.size());
  }

  LoopForest run() {
    for (Block b : f_.layout) {
      const Inst& first = f_.inst(f_.block(b).insts[0]);
      if (first.op == Opcode::kLoopHeader) collect(LoopId(first.aux), b);
    }
    nest();
    measure();
    return std::move(forest_);
  }

 private:
  void collect(LoopId l, Block header) {
    uint32_t mark = l.index() + 1;
    std::vector<Block>& blocks = forest_.loops[l.index()].blocks;
    std::vector<Block> work;
    auto reach = [&](Block b) {
      if (seen_[b.index()] == mark || !dominators_.reachable(b)) return;
      seen_[b.index()] = mark;
      work.push_back(b);
      blocks.push_back(b);
    };
    forest_.loops[l.index()].header = header;
    seen_[header.index()] = mark;
    blocks.push_back(header);
    for (const Predecessor& p : preds_[header.index()]) {
      if (dominators_.reachable(p.from) && dominators_.dominates(header, p.from)) reach(p.from);
    }
    while (!work.empty()) {
      Block b = work.back();
      work.pop_back();
      for (const Predecessor& p : preds_[b.index()]) reach(p.from);
    }
    std::ranges::sort(blocks, std::less<>{}, [&](Block b) { return position_[b.index()]; });
  }

  // From large to small: the loop last seen at a header encloses it.
  void nest() {
    std::vector<uint32_t> order(forest_.loops.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return forest_.loops[a].blocks.size() > forest_.loops[b].blocks.size();
    });
    for (uint32_t i : order) {
      LoopForest::Loop& l = forest_.loops[i];
      if (!l.header.valid()) continue;
      l.parent = forest_.innermost[l.header.index()];
      if (l.parent.valid()) l.depth = forest_.loop(l.parent).depth + 1;
      for (Block b : l.blocks) forest_.innermost[b.index()] = LoopId(i);
    }
  }

  void measure() {
    for (LoopForest::Loop& l : forest_.loops) {
      uint32_t height = 1;
      for (LoopId up = l.parent; up.valid(); up = forest_.loop(up).parent) {
        LoopForest::Loop& above = forest_.loops[up.index()];
        above.height = std::max(above.height, height++);
      }
    }
    // By parent; the last entry is for outermost loops.
    std::vector<uint32_t> children(forest_.loops.size() + 1);
    auto of = [&](const LoopForest::Loop& l) -> uint32_t& {
      return l.parent.valid() ? children[l.parent.index()] : children.back();
    };
    for (const LoopForest::Loop& l : forest_.loops) ++of(l);
    for (LoopForest::Loop& l : forest_.loops) l.siblings = of(l) - 1;
  }

  const Function& f_;
  Dominators dominators_;
  Predecessors preds_;
  std::vector<uint32_t> position_;  // by Block::index(): in the layout
  std::vector<uint32_t> seen_;
  LoopForest forest_;
};

}  // namespace

bool LoopForest::contains(LoopId l, Block b) const {
  for (LoopId i = innermost[b.index()]; i.valid(); i = loop(i).parent) {
    if (i == l) return true;
  }
  return false;
}

LoopForest find_loop_forest(const Function& f) {
  if (f.loop_count == 0) return {.loops = {}, .innermost = std::vector<LoopId>(f.blocks.size())};
  return LoopForestFinder(f).run();
}

std::vector<bool> select_loops(const LoopForest& forest, const LoopProbeRequest& r) {
  std::vector<bool> chosen(forest.loops.size() + 1);
  for (size_t i = 0; i < forest.loops.size(); ++i) {
    const LoopForest::Loop& l = forest.loops[i];
    chosen[i] = r.loops && l.depth <= r.max_depth && l.height >= r.min_height &&
                (!r.siblings_only || l.siblings != 0);
  }
  chosen.back() = r.function;
  return chosen;
}

LoopCrossing crossing(const LoopForest& forest, Block from, Block to) {
  LoopCrossing c;
  for (LoopId l = forest.innermost[from.index()]; l.valid(); l = forest.loop(l).parent) {
    if (!forest.contains(l, to)) c.left.push_back(l);
  }
  LoopId target = forest.innermost[to.index()];
  if (target.valid() && !forest.contains(target, from)) c.entered = target;
  return c;
}

}  // namespace uptier::jit
