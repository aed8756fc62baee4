// The places of split edges. A back edge, or an edge to the block that follows anyway, goes right
// after its source. An unlikely edge goes after the loop that holds both ends, or before a cold
// target, so that its moves are out of the way.
#include <algorithm>

#include "jit/x64/lower_impl.h"

namespace uptier::jit::x64 {
namespace {

constexpr float kLikely = 0.4f;

class BlockPlanner {
 public:
  BlockPlanner(const Function& f, const LoopNest& n, const Frequencies& q)
      : f_(f), loops_(n), frequencies_(q), position_(layout_positions(f)) {}

  BlockPlan run() {
    plan_.place.assign(f_.blocks.size(), UINT32_MAX);
    plan_.edge_place.assign(f_.edges.size(), UINT32_MAX);
    behind_.resize(f_.blocks.size());
    before_.resize(f_.blocks.size());
    find_last_blocks();
    count_preds();
    for (Block b : f_.layout) split_edges(b);
    for (Block b : f_.layout) {
      append(before_[b.index()]);
      plan_.place[b.index()] = static_cast<uint32_t>(plan_.order.size());
      plan_.order.push_back({.block = b,
                             .frequency = frequencies_.at(b),
                             .loop = loops_.loop_of[b.index()],
                             .cold = frequencies_.cold[b.index()]});
      append(behind_[b.index()]);
    }
    for (auto [edge, same] : shared_) plan_.edge_place[edge] = plan_.edge_place[same];
    return std::move(plan_);
  }

 private:
  // Finds the last block that is not cold, of each loop and (as the last entry) of the function.
  void find_last_blocks() {
    last_.assign(loops_.loops.size() + 1, f_.entry());
    for (Block b : f_.layout) {
      if (frequencies_.cold[b.index()]) continue;
      last_.back() = b;
      for (uint32_t l = loops_.loop_of[b.index()]; l != kNoLoop; l = loops_.loops[l].parent) {
        last_[l] = b;
      }
    }
  }

  void count_preds() {
    pred_count_.assign(f_.blocks.size(), 0);
    for (Block b : f_.layout) {
      for (const Edge& e : f_.successors(b)) ++pred_count_[e.to.index()];
    }
  }

  void split_edges(Block from) {
    const Inst& t = f_.terminator(from);
    if (t.edge_count < 2) return;
    std::vector<uint32_t> split;
    for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) {
      const Edge& edge = f_.edges[e];
      if (pred_count_[edge.to.index()] == 1 && edge.args.size == 0) continue;
      auto same = std::find_if(split.begin(), split.end(), [&](uint32_t s) { return equal(s, e); });
      if (same != split.end()) {
        shared_.push_back({e, *same});
        continue;
      }
      split.push_back(e);
      place_split(from, e);
    }
  }

  bool equal(uint32_t a, uint32_t b) {
    if (f_.edges[a].to != f_.edges[b].to) return false;
    auto x = f_.list(f_.edges[a].args), y = f_.list(f_.edges[b].args);
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  }

  float edge_frequency(Block from, uint32_t edge) {
    const Inst& t = f_.terminator(from);
    Block to = f_.edges[edge].to;
    float whole = frequencies_.at(from), most = std::min(whole, frequencies_.at(to));
    if (t.edge_count == 2) {
      Block other = f_.edges[edge == t.edges_at ? t.edges_at + 1 : t.edges_at].to;
      float rest = frequencies_.at(other);
      if (pred_count_[other.index()] == 1) return std::clamp(whole - rest, 1e-6f, most);
      uint32_t loop = loops_.loop_of[from.index()];
      bool stays = loops_.contains(loop, to), other_stays = loops_.contains(loop, other);
      if (stays != other_stays) return std::min(most, whole * (stays ? 0.9f : 0.1f));
    }
    return std::min(most, whole * 0.5f);
  }

  void place_split(Block from, uint32_t edge) {
    Block to = f_.edges[edge].to;
    BlockPlan::Entry entry{.from = from, .edge = edge, .frequency = edge_frequency(from, edge)};
    entry.loop = loops_.loop_of[from.index()];
    while (entry.loop != kNoLoop && !loops_.contains(entry.loop, to)) {
      entry.loop = loops_.loops[entry.loop].parent;
    }
    bool from_cold = frequencies_.cold[from.index()], to_cold = frequencies_.cold[to.index()];
    entry.cold = from_cold || to_cold;
    uint32_t at = position_[from.index()], target = position_[to.index()];
    bool near = target <= at || target == at + 1 || from_cold ||
                entry.frequency >= kLikely * frequencies_.at(from);
    if (to_cold && !from_cold) {
      before_[to.index()].push_back(entry);
    } else if (near) {
      behind_[from.index()].push_back(entry);
    } else {
      size_t l = entry.loop == kNoLoop ? loops_.loops.size() : entry.loop;
      behind_[last_[l].index()].push_back(entry);
    }
  }

  void append(const std::vector<BlockPlan::Entry>& entries) {
    for (const auto& e : entries) {
      plan_.edge_place[e.edge] = static_cast<uint32_t>(plan_.order.size());
      plan_.order.push_back(e);
    }
  }

  const Function& f_;
  const LoopNest& loops_;
  const Frequencies& frequencies_;
  std::vector<uint32_t> position_;
  std::vector<uint32_t> pred_count_;
  std::vector<Block> last_;
  std::vector<std::vector<BlockPlan::Entry>> behind_, before_;
  // Edge, equal edge whose split block it shares.
  std::vector<std::pair<uint32_t, uint32_t>> shared_;
  BlockPlan plan_;
};

}  // namespace

BlockPlan plan_blocks(const Function& f, const LoopNest& n, const Frequencies& q) {
  return BlockPlanner(f, n, q).run();
}

}  // namespace uptier::jit::x64
