#include "jit/opt/frequencies.h"

#include <algorithm>
#include <unordered_map>

namespace uptier::jit {
namespace {

constexpr float kLeast = 1e-6f;
constexpr float kMost = 1e12f;
constexpr float kLoopFactor = 10;
constexpr float kTrapShare = 1e-3f;
// Of a loop, as its counts may tell. Beyond the static factor the register allocator gains nothing
// by knowing, and pays: what is done once per entry looks free to it (bytecode took 1.3 to 1.4
// times as long with true counts, 1.0 to 1.1 times with this limit).
constexpr float kMostRounds = kLoopFactor;
constexpr float kExitShare = 0.1f;
constexpr float kColdShare = 0.02f;  // of the frequency of the nearest dominator at the same depth

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

void from_shape(Frequencies& q, const Function& f, const ControlFlow& d, const LoopNest& n) {
  std::vector<bool> doomed = find_doomed(f, d);
  q.of[f.entry().index()] = 1;
  std::vector<float> share;
  for (uint32_t i = 0; i < d.order().size(); ++i) {
    Block b = d.order()[i];
    float& own = q.of[b.index()];
    if (n.is_header(b)) own *= kLoopFactor;
    own = std::clamp(own, kLeast, kMost);
    auto edges = f.successors(b);
    uint32_t loop = n.loop_of[b.index()];
    share.assign(edges.size(), 1);
    float sum = 0;
    for (size_t e = 0; e < edges.size(); ++e) {
      if (doomed[edges[e].to.index()])
        share[e] = kTrapShare;
      else if (!n.contains(loop, edges[e].to))
        share[e] = kExitShare;
      sum += share[e];
    }
    for (size_t e = 0; e < edges.size(); ++e) {
      Block to = edges[e].to;
      if (d.position[to.index()] > i) q.of[to.index()] += own * share[e] / sum;
    }
  }
}

uint64_t key_of(const Inst& probe) { return uint64_t{probe.body} << 32 | probe.aux; }

// How often the place of each block probe is passed in copies at the end of other blocks, see
// duplicate_tails.
std::unordered_map<uint64_t, float> passed_elsewhere(const Function& f, const BlockCounts& counts) {
  std::unordered_map<uint64_t, float> passed;
  for (Block b : f.layout) {
    const Inst* first = first_block_probe(f, b);
    for (InstId i : f.block(b).insts) {
      const Inst& probe = f.inst(i);
      bool copy = is_block_probe(probe) && &probe != first && !resumes(probe);
      if (copy) passed[key_of(probe)] += counts.at(*first);
    }
  }
  return passed;
}

// The copies of a block that are blocks of their own, see copy_loop: how deep the deepest lie in
// loops, and how many those are.
struct Copies {
  uint32_t depth = 0;
  float deepest = 0;
};

std::unordered_map<uint64_t, Copies> copies_of_blocks(const Function& f, const LoopNest& n) {
  std::unordered_map<uint64_t, Copies> copies;
  for (Block b : f.layout) {
    const Inst* probe = first_block_probe(f, b);
    if (probe == nullptr) continue;
    Copies& c = copies[key_of(*probe)];
    if (n.depth(b) > c.depth) c = {n.depth(b), 0};
    if (n.depth(b) == c.depth) ++c.deepest;
  }
  return copies;
}

// Blocks that passes made have no site: they run as often as the most frequent block before them
// on a forward edge. So do copies in front of a loop; those that lie deepest share the count.
void from_counts(Frequencies& q, const Function& f, const ControlFlow& d, const LoopNest& n,
                 const BlockCounts& counts) {
  const std::unordered_map<uint64_t, float> passed = passed_elsewhere(f, counts);
  const std::unordered_map<uint64_t, Copies> copies = copies_of_blocks(f, n);
  const Inst* at_entry = first_block_probe(f, f.entry());
  float entry = at_entry != nullptr ? std::max(1.0f, counts.at(*at_entry)) : 1.0f;
  for (uint32_t i = 0; i < d.order().size(); ++i) {
    Block b = d.order()[i];
    float& own = q.of[b.index()];
    const Inst* probe = first_block_probe(f, b);
    const Copies same = probe != nullptr ? copies.at(key_of(*probe)) : Copies{};
    if (probe != nullptr && n.depth(b) == same.depth) {
      auto elsewhere = passed.find(key_of(*probe));
      float here = counts.at(*probe) - (elsewhere == passed.end() ? 0 : elsewhere->second);
      own = here / same.deepest / entry;
    } else {
      own = i == 0 ? 1.0f : 0.0f;
      for (const Predecessor& p : d.preds[b.index()]) {
        if (d.position[p.from.index()] < i) own = std::max(own, q.at(p.from));
      }
    }
    own = std::clamp(own, kLeast, kMost);
  }
}

// Lets no loop's header run more than kMostRounds times as often as it is entered, or the function
// is; what is in the loop keeps its share of the header.
void limit_loops(Frequencies& q, const ControlFlow& d, const LoopNest& n) {
  for (size_t l = n.loops.size(); l-- > 0;) {
    Block header = n.loops[l].header;
    float entered = 0;
    for (const Predecessor& p : d.preds[header.index()]) {
      bool outside = !n.contains(static_cast<uint32_t>(l), p.from);
      if (outside) entered += q.at(p.from);
    }
    float most = kMostRounds * std::max(1.0f, entered);
    if (q.at(header) <= most) continue;
    float factor = most / q.at(header);
    for (Block b : d.order()) {
      if (!n.contains(static_cast<uint32_t>(l), b)) continue;
      float& own = q.of[b.index()];
      own = std::clamp(own * factor, kLeast, kMost);
    }
  }
}

void mark_cold(Frequencies& q, const ControlFlow& d, const LoopNest& n) {
  for (size_t i = 1; i < d.order().size(); ++i) {
    Block b = d.order()[i];
    Block up = d.idom(b);
    bool cold = q.cold[up.index()];
    // A dominator inside a loop that b has left runs oftener than the way to b: look above it.
    while (!n.contains(n.loop_of[up.index()], b)) {
      Block above = d.idom(n.loops[n.loop_of[up.index()]].header);
      if (!above.valid()) break;
      up = above;
    }
    q.cold[b.index()] = cold || q.at(b) < kColdShare * q.at(up);
  }
}

}  // namespace

Frequencies estimate_frequencies(const Function& f, const ControlFlow& d, const LoopNest& n,
                                 const BlockCounts& counts) {
  Frequencies q;
  q.of.assign(f.blocks.size(), 0);
  q.cold.assign(f.blocks.size(), false);
  if (counts.empty()) {
    from_shape(q, f, d, n);
  } else {
    from_counts(q, f, d, n, counts);
  }
  mark_cold(q, d, n);
  limit_loops(q, d, n);
  return q;
}

}  // namespace uptier::jit
