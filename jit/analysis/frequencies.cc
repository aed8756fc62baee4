#include "jit/analysis/frequencies.h"

#include <algorithm>

#include "jit/analysis/edge_shares.h"

namespace uptier::jit {
namespace {

constexpr float kLeast = 1e-6f;
constexpr float kMostFrequency = 1e12f;
constexpr float kLoopFactor = 10;
// The most iterations that a profile may claim for a loop. The running time of the example programs
// is the same for 30, 100 and 10,000. A single entry of a method, as in many profiles, is no better
// evidence.
constexpr double kMostRounds = 30;
// The depth of nested loops up to which counts are used: the flow through deeper nests would take
// the cube of their number of blocks, and no number can hold how often their innermost loop
// repeats.
constexpr uint32_t kDeepestNest = 32;
constexpr float kColdShare = 0.02f;  // of the frequency of the nearest dominator at the same depth
// Observed executions of a switch from which on a case that none of them took is known to be colder
// than that (the rule of three).
constexpr float kTellingSamples = 3 / kColdShare;

void from_shape(Frequencies& q, const Function& f, const ControlFlow& d, const LoopNest& n) {
  q.shares = edge_shares(f, d, n, {});
  q.of[f.entry().index()] = 1;
  for (uint32_t i = 0; i < d.order().size(); ++i) {
    Block b = d.order()[i];
    float& own = q.of[b.index()];
    if (n.is_header(b)) own *= kLoopFactor;
    own = std::clamp(own, kLeast, kMostFrequency);
    const Inst& t = f.terminator(b);
    for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) {
      Block to = f.edges[e].to;
      if (d.position[to.index()] > i) q.of[to.index()] += own * q.shares[e];
    }
  }
}

// Visits loops from the inside out: the number of iterations of a loop follows from the flow back
// to its header; the flow out of a loop equals the flow into it.
class FlowWalk {
 public:
  FlowWalk(const Function& f, const ControlFlow& d, const LoopNest& n, const BlockCounts& counts)
      : f_(f), d_(d), loops_(n), shares_(edge_shares(f, d, n, counts)) {}

  void run(Frequencies& q) {
    mass_.assign(f_.blocks.size(), 0);
    rounds_.assign(loops_.loops.size(), 1);
    leave_.assign(loops_.loops.size(), 1);
    std::vector<std::vector<Block>> members(loops_.loops.size());
    for (Block b : d_.order()) {
      for (uint32_t l = loops_.loop_of[b.index()]; l != kNoLoop; l = loops_.loops[l].parent) {
        members[l].push_back(b);
      }
    }
    for (uint32_t l = 0; l < members.size(); ++l) measure(l, members[l]);
    walk(kNoLoop, d_.order());
    for (Block b : d_.order()) {
      double mass = std::min<double>(mass_[b.index()], kMostFrequency);
      q.of[b.index()] = mass > kLeast ? static_cast<float>(mass) : kLeast;
    }
    q.shares = std::move(shares_);
  }

 private:
  struct Ends {
    double back = 0, out = 0;
  };

  // Sends 1 into the loop `l`, or into the function; inner loops have been measured.
  Ends walk(uint32_t l, const std::vector<Block>& members) {
    for (Block b : members) mass_[b.index()] = 0;
    mass_[members[0].index()] = 1;
    Ends ends;
    for (Block b : members) {
      uint32_t own = loops_.loop_of[b.index()];
      double& mass = mass_[b.index()];
      if (own != l && loops_.is_header(b)) mass *= rounds_[own];
      const Inst& t = f_.terminator(b);
      if (t.edge_count == 0) ends.out += mass;
      for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) {
        Block to = f_.edges[e].to;
        double flow = mass * shares_[e];
        for (uint32_t x = own; x != l && !loops_.contains(x, to); x = loops_.loops[x].parent) {
          flow *= leave_[x];
        }
        if (l != kNoLoop && to == members[0]) {
          ends.back += flow;
        } else if (!loops_.contains(l, to)) {
          ends.out += flow;
        } else if (d_.position[to.index()] > d_.position[b.index()]) {
          mass_[to.index()] += flow;
        }
      }
    }
    return ends;
  }

  void measure(uint32_t l, const std::vector<Block>& members) {
    Ends ends = walk(l, members);
    double all = ends.out + ends.back;
    double out = std::max(all > 0 ? ends.out / all : 0, 1.0 / kMostFrequency);
    rounds_[l] = std::clamp(1 / out, 1.0, kMostRounds);
    leave_[l] = 1 / (out * rounds_[l]);
  }

  const Function& f_;
  const ControlFlow& d_;
  const LoopNest& loops_;
  std::vector<float> shares_;
  std::vector<double> mass_;    // by Block::index()
  std::vector<double> rounds_;  // by loop
  std::vector<double> leave_;   // by loop: factor that makes as much leave as enters
};

// Returns the share of its dominator's executions below which a block is cold. One case of a large
// switch has a small share, which does not make it cold unless enough executions were observed;
// before that, it is cold if its shape says so, as for a case that only traps. The share by shape
// enters edge_shares() with the weight of one observation.
float cold_share(const Function& f, Block dominator, const BlockCounts& counts) {
  const Inst& t = f.terminator(dominator);
  if (t.edge_count <= 2) return kColdShare;
  const Inst* probe = last_block_probe(f, dominator);
  float seen = counts.empty() || probe == nullptr ? 0 : counts.seen(*probe);
  if (seen >= kTellingSamples) return kColdShare;
  return kColdShare * 2 / static_cast<float>(t.edge_count) / (1 + seen);
}

void mark_cold(Frequencies& q, const Function& f, const ControlFlow& d, const LoopNest& n,
               const BlockCounts& counts) {
  for (size_t i = 1; i < d.order().size(); ++i) {
    Block b = d.order()[i];
    Block up = d.idom(b);
    bool cold = q.cold[up.index()];
    float share = cold_share(f, up, counts);
    // A dominator inside a loop that b is outside of runs more often than the path to b: look above
    // it.
    while (!n.contains(n.loop_of[up.index()], b)) {
      Block above = d.idom(n.loops[n.loop_of[up.index()]].header);
      if (!above.valid()) break;
      up = above;
      share = kColdShare;
    }
    q.cold[b.index()] = cold || q.at(b) < share * q.at(up);
  }
}

}  // namespace

Frequencies estimate_frequencies(const Function& f, const ControlFlow& d, const LoopNest& n,
                                 const BlockCounts& counts) {
  Frequencies q;
  q.of.assign(f.blocks.size(), 0);
  q.cold.assign(f.blocks.size(), false);
  auto deep = [](const LoopNest::Loop& l) { return l.depth > kDeepestNest; };
  if (counts.empty() || std::ranges::any_of(n.loops, deep)) {
    from_shape(q, f, d, n);
  } else {
    FlowWalk(f, d, n, counts).run(q);
  }
  mark_cold(q, f, d, n, counts);
  return q;
}

}  // namespace uptier::jit
