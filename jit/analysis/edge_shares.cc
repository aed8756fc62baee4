#include "jit/analysis/edge_shares.h"

#include <algorithm>
#include <unordered_map>

namespace uptier::jit {
namespace {

constexpr float kTrapShare = 1e-3f;
constexpr float kExitShare = 0.1f;
constexpr float kMostCount = 1e30f;
constexpr double kPartLeft = 0.125;  // iterations of a remainder loop per group of iterations of
                                     // its unrolled loop
constexpr uint32_t kTurns =
    6;  // of scaling; exact after one turn if every target has one predecessor

// Marks the blocks from which every path ends in a trap.
std::vector<bool> find_doomed(const Function& f, const ControlFlow& d) {
  std::vector<bool> doomed(f.blocks.size());
  for (size_t i = d.order().size(); i-- > 0;) {
    Block b = d.order()[i];
    const Inst& t = f.terminator(b);
    auto edges = f.successors(b);
    doomed[b.index()] = t.op == Opcode::kTrap ||
                        (!edges.empty() && std::all_of(edges.begin(), edges.end(), [&](auto& e) {
                          return d.position[e.to.index()] > i && doomed[e.to.index()];
                        }));
  }
  return doomed;
}

std::vector<float> by_shape(const Function& f, const ControlFlow& d, const LoopNest& n) {
  std::vector<bool> doomed = find_doomed(f, d);
  std::vector<float> shares(f.edges.size());
  for (Block b : d.order()) {
    const Inst& t = f.terminator(b);
    uint32_t loop = n.loop_of[b.index()];
    float sum = 0;
    for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) {
      Block to = f.edges[e].to;
      shares[e] = doomed[to.index()] ? kTrapShare : n.contains(loop, to) ? 1 : kExitShare;
      sum += shares[e];
    }
    for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) shares[e] /= sum;
  }
  return shares;
}

uint64_t key_of(const Inst& probe) { return uint64_t{probe.body} << 32 | probe.aux; }

// Returns how often a block contains the probe that it begins with: more than once if the block is
// several iterations of a loop, see runtime_unroll.
uint32_t rounds_in(const Function& f, Block b) {
  const Inst* first = first_block_probe(f, b);
  if (first == nullptr) return 0;
  return static_cast<uint32_t>(std::ranges::count_if(f.block(b).insts, [&](InstId i) {
    const Inst& probe = f.inst(i);
    return is_block_probe(probe) && key_of(probe) == key_of(*first) && !resumes(probe);
  }));
}

// Returns how often control passes each block probe in copies at the end of other blocks, see
// jump_threading.
std::unordered_map<uint64_t, float> passed_elsewhere(const Function& f, const BlockCounts& counts) {
  std::unordered_map<uint64_t, float> passed;
  for (Block b : f.layout) {
    const Inst* first = first_block_probe(f, b);
    for (InstId i : f.block(b).insts) {
      const Inst& probe = f.inst(i);
      bool copy = is_block_probe(probe) && &probe != first && !resumes(probe);
      if (copy && key_of(probe) != key_of(*first)) passed[key_of(probe)] += counts.at(*first);
    }
  }
  return passed;
}

class Fitter {
 public:
  Fitter(const Function& f, const ControlFlow& d, const BlockCounts& counts,
         const std::vector<float>& shape)
      : f_(f), d_(d), counts_(counts), shape_(shape), flow_(f.edges.size()) {}

  std::vector<float> run() {
    find_counts();
    find_edges_into();
    begin();
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      for (Block b : d_.order()) balance(b);
    }
    std::vector<float> shares(f_.edges.size());
    for (Block b : d_.order()) {
      const Inst& t = f_.terminator(b);
      const Inst* probe = first_block_probe(f_, b);
      double one = probe != nullptr ? counts_.sample(*probe) : 1, sum = out_of(b) + one;
      for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) {
        shares[e] = static_cast<float>((flow_[e] + one * shape_[e]) / sum);
      }
    }
    return shares;
  }

 private:
  static constexpr double kUnknown = -1;

  // The count of a block made by a pass, which has no site, stays unknown: the flow out of it
  // equals the flow into it. The same holds for a block moved out of an unrolled loop, whose body
  // block is several iterations. The remainder loop runs the few iterations left over.
  void find_counts() {
    const std::unordered_map<uint64_t, float> passed = passed_elsewhere(f_, counts_);
    count_.assign(f_.blocks.size(), kUnknown);
    std::unordered_map<uint64_t, double> unrolled;  // executions
    for (Block b : d_.order()) {
      uint32_t rounds = rounds_in(f_, b);
      if (rounds < 2) continue;
      const Inst& probe = *first_block_probe(f_, b);
      count_[b.index()] = std::min(counts_.at(probe), kMostCount) / static_cast<float>(rounds);
      unrolled[key_of(probe)] = count_[b.index()];
    }
    for (Block b : d_.order()) {
      const Inst* probe = first_block_probe(f_, b);
      if (probe == nullptr || count_[b.index()] != kUnknown) continue;
      if (auto u = unrolled.find(key_of(*probe)); u != unrolled.end()) {
        if (goes_round(b)) count_[b.index()] = u->second * kPartLeft;
        continue;
      }
      auto elsewhere = passed.find(key_of(*probe));
      float here = counts_.at(*probe) - (elsewhere == passed.end() ? 0 : elsewhere->second);
      count_[b.index()] = here >= 0 ? std::min(here, kMostCount) : 0;
    }
  }

  bool goes_round(Block b) const {
    return std::ranges::any_of(f_.successors(b), [&](const Edge& e) { return e.to == b; });
  }

  void find_edges_into() {
    into_at_.assign(f_.blocks.size() + 1, 0);
    auto each_edge = [&](auto visit) {
      for (Block b : d_.order()) {
        const Inst& t = f_.terminator(b);
        for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) visit(e);
      }
    };
    each_edge([&](uint32_t e) { ++into_at_[f_.edges[e].to.index() + 1]; });
    for (size_t b = 1; b < into_at_.size(); ++b) into_at_[b] += into_at_[b - 1];
    into_.resize(into_at_.back());
    std::vector<uint32_t> at(into_at_.begin(), into_at_.end() - 1);
    each_edge([&](uint32_t e) { into_[at[f_.edges[e].to.index()]++] = e; });
  }

  double into(Block b) const {
    double sum = 0;
    for (uint32_t k = into_at_[b.index()]; k < into_at_[b.index() + 1]; ++k) sum += flow_[into_[k]];
    return sum;
  }

  double out_of(Block b) const {
    const Inst& t = f_.terminator(b);
    double sum = 0;
    for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) sum += flow_[e];
    return sum;
  }

  void begin() {
    for (Block b : d_.order()) {
      double count = count_[b.index()] == kUnknown ? into(b) : count_[b.index()];
      const Inst& t = f_.terminator(b);
      for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) {
        flow_[e] = count * shape_[e];
      }
    }
  }

  void balance(Block b) {
    double count = count_[b.index()], in = into(b);
    if (count != kUnknown && in > 0) {
      for (uint32_t k = into_at_[b.index()]; k < into_at_[b.index() + 1]; ++k) {
        flow_[into_[k]] *= count / in;
      }
    }
    double out = out_of(b), leaves = count == kUnknown ? in : count;
    if (out <= 0) return;
    const Inst& t = f_.terminator(b);
    for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) flow_[e] *= leaves / out;
  }

  const Function& f_;
  const ControlFlow& d_;
  const BlockCounts& counts_;
  const std::vector<float>& shape_;
  std::vector<double> flow_;       // by edge
  std::vector<double> count_;      // by Block::index()
  std::vector<uint32_t> into_at_;  // by Block::index(): the first of its edges in `into_`
  std::vector<uint32_t> into_;
};

}  // namespace

std::vector<float> edge_shares(const Function& f, const ControlFlow& d, const LoopNest& n,
                               const BlockCounts& counts) {
  std::vector<float> shape = by_shape(f, d, n);
  return counts.empty() ? shape : Fitter(f, d, counts, shape).run();
}

}  // namespace uptier::jit
