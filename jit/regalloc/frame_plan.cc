#include "jit/regalloc/frame_plan.h"

#include <algorithm>

namespace uptier::jit::machine {
namespace {

// The share of calls that must return from bare blocks to make a bare beginning worthwhile.
constexpr float kLeastShare = 0.02f;
// The most places that make the frame. Each takes some 30 bytes.
constexpr uint32_t kMostPlaces = 3;
// The most instructions in bare blocks. Registers are scarce in those, so only short beginnings are
// requested.
constexpr uint32_t kMostAsked = 128;

bool touches_frame(Location l) {
  if (l.is_reg()) return (mask_of(l.index()) & kCalleeSaved) != 0;
  return l.is_slot() || l.kind() == Location::Kind::kOutgoing;
}

// A set of blocks that is entered only through its first block.
class BareBlocks {
 public:
  BareBlocks(const MachineFunction& m, std::vector<bool> can, std::vector<bool> framed_tail)
      : m_(m), bare_(std::move(can)), framed_tail_(std::move(framed_tail)) {}

  // Returns the blocks that the law allows.
  std::vector<bool> allowed() {
    close();
    return std::move(bare_);
  }

  // Returns the blocks that the law allows, if running them bare pays; otherwise none.
  std::vector<bool> paying() {
    close();
    if (bare_[0]) keep_what_returns();
    if (!bare_[0] || !pays()) bare_.assign(m_.blocks.size(), false);
    return std::move(bare_);
  }

 private:
  auto edges(uint32_t b) const { return m_.edges_of(m_.terminator(m_.blocks[b])); }

  // Removes blocks that a framed block leads to. A block whose moves at the jump need the frame
  // makes the frame there, so it counts as framed for its successors.
  void close() {
    std::vector<uint32_t> work;
    auto remove = [&](uint32_t b) {
      if (!bare_[b]) return;
      bare_[b] = false;
      work.push_back(b);
    };
    for (uint32_t b = 0; b < m_.blocks.size(); ++b) {
      if (!bare_[b] || framed_tail_[b]) work.push_back(b);
    }
    while (!work.empty()) {
      uint32_t b = work.back();
      work.pop_back();
      for (const MEdge& e : edges(b)) remove(e.to);
    }
  }

  // Keeps the blocks that lead to a return: others may as well have the frame. Blocks that are
  // entered only from bare blocks and end in a trap stay bare as well, since they need no frame for
  // it.
  void keep_what_returns() {
    std::vector<bool> can = bare_;
    bare_.assign(m_.blocks.size(), false);
    std::vector<uint32_t> work;
    auto keep = [&](uint32_t b) {
      if (!can[b] || bare_[b]) return;
      bare_[b] = true;
      work.push_back(b);
    };
    for (uint32_t b = 0; b < m_.blocks.size(); ++b) {
      if (is_return(m_.terminator(m_.blocks[b]))) keep(b);
    }
    while (!work.empty()) {
      uint32_t b = work.back();
      work.pop_back();
      for (uint32_t p : m_.blocks[b].preds) keep(p);
    }
    for (bool more = true; more;) {
      more = false;
      for (uint32_t b = 0; b < m_.blocks.size(); ++b) {
        if (!can[b] || bare_[b] || !stays(b)) continue;
        bare_[b] = more = true;
      }
    }
  }

  // Returns whether only bare blocks lead to a block, and it leads only to bare blocks.
  bool stays(uint32_t b) const {
    auto is_bare = [&](uint32_t p) { return bare_[p]; };
    return !m_.blocks[b].preds.empty() && std::ranges::all_of(m_.blocks[b].preds, is_bare) &&
           std::ranges::all_of(edges(b), [&](const MEdge& e) { return bare_[e.to]; });
  }

  bool pays() const {
    float returns = 0;
    uint32_t places = 0;
    for (uint32_t b = 0; b < m_.blocks.size(); ++b) {
      if (!bare_[b]) continue;
      if (is_return(m_.terminator(m_.blocks[b]))) returns += m_.blocks[b].frequency;
      for (const MEdge& e : edges(b)) places += !bare_[e.to];
    }
    return places == 0 ||
           (places <= kMostPlaces && returns >= kLeastShare * m_.blocks[0].frequency);
  }

  const MachineFunction& m_;
  std::vector<bool> bare_;
  std::vector<bool> framed_tail_;  // the moves at the block's jump need the frame
};

// ---- The request ------------------------------------------------------------------------------

bool may_be_bare(const MachineFunction& m, const MBlock& b) {
  return std::none_of(m.insts.begin() + b.begin, m.insts.begin() + b.end, needs_frame);
}

// Returns whether a block is a label and a return.
bool only_returns(const MachineFunction& m, const MBlock& b) {
  return b.end - b.begin == 2 && is_return(m.insts[b.end - 1]);
}

// Replaces the jump that ends `from` by the return in `to`.
void return_at_once(MachineFunction& m, uint32_t from, uint32_t to) {
  const MBlock& target = m.blocks[to];
  const MEdge edge = m.edges_of(m.terminator(m.blocks[from]))[0];
  MInst made = m.terminator(target);
  auto at = static_cast<uint32_t>(m.operands.size());
  auto params = m.params_of(target);
  for (uint32_t n = 0; n < made.count(); ++n) {
    Operand o = m.operands[made.operands_at + n];
    for (uint32_t k = 0; k < params.size(); ++k) {
      if (o.vreg != params[k]) continue;
      const MArg& a = m.edge_args[edge.args_at + k];
      o.vreg = a.vreg;
      o.constant = a.constant;
      break;
    }
    m.operands.push_back(o);
  }
  made.operands_at = at;
  m.insts[m.blocks[from].end - 1] = made;
}

struct ReturningJump {
  uint32_t from, to;
};

// Gives the jumps the probe sites of the returning blocks that they replace.
void copy_probes(MachineFunction& m, const std::vector<ReturningJump>& jumps) {
  auto sooner = [](const MProbe& p, uint32_t inst) { return p.inst < inst; };
  std::vector<MProbe> made;
  for (auto [from, to] : jumps) {
    const MBlock& target = m.blocks[to];
    auto p = std::lower_bound(m.probes.begin(), m.probes.end(), target.begin, sooner);
    for (; p != m.probes.end() && p->inst < target.end; ++p) {
      made.push_back({m.blocks[from].end - 1, p->site, p->body, p->kind});
    }
  }
  m.probes.insert(m.probes.end(), made.begin(), made.end());
  std::ranges::stable_sort(m.probes, {}, &MProbe::inst);
}

void forget_preds(MachineFunction& m, const std::vector<ReturningJump>& jumps) {
  std::vector<bool> returns(m.blocks.size()), left(m.blocks.size());
  for (auto [from, to] : jumps) returns[from] = left[to] = true;
  for (uint32_t b = 0; b < m.blocks.size(); ++b) {
    if (left[b]) std::erase_if(m.blocks[b].preds, [&](uint32_t p) { return returns[p]; });
  }
}

// Gives bare blocks a return of their own where they jump to a return that framed blocks share.
// Returns whether enough calls return from bare blocks for it to pay.
bool part_returns(MachineFunction& m, const std::vector<bool>& bare) {
  std::vector<ReturningJump> jumps;
  float returns = 0;
  for (uint32_t b = 0; b < m.blocks.size(); ++b) {
    const MInst& t = m.terminator(m.blocks[b]);
    if (!bare[b]) continue;
    if (is_return(t)) returns += m.blocks[b].frequency;
    if (!is_jump(t)) continue;
    uint32_t to = m.edges_of(t)[0].to;
    if (bare[to] || !only_returns(m, m.blocks[to])) continue;
    returns += m.blocks[b].frequency;
    jumps.push_back({b, to});
  }
  if (returns < kLeastShare * m.blocks[0].frequency) return false;
  for (auto [from, to] : jumps) return_at_once(m, from, to);
  copy_probes(m, jumps);
  forget_preds(m, jumps);
  return true;
}

// ---- The result -------------------------------------------------------------------------------

// Finds which blocks can be bare with the locations that the allocator chose. Moves at a jump
// belong to the transition to the next block; all others belong to the block itself.
class Outcome {
 public:
  Outcome(const MachineFunction& m, const Allocation& a)
      : m_(m), can_(m.blocks.size()), framed_tail_(m.blocks.size()) {
    auto move = a.moves.begin();
    for (uint32_t b = 0; b < m.blocks.size(); ++b) {
      const MBlock& block = m.blocks[b];
      can_[b] = may_be_bare(m, block);
      for (uint32_t n = block.begin; n < block.end && can_[b]; ++n) {
        for (const Operand& o : m.operands_of(m.insts[n])) {
          if (touches_frame(o.at) || touches_frame(o.fixed)) can_[b] = false;
        }
      }
      bool jumps = is_jump(m.terminator(block));
      for (; move != a.moves.end() && move->gap < block.end; ++move) {
        if (!touches_frame(move->from) && !touches_frame(move->to)) continue;
        bool at_jump = jumps && move->gap == block.end - 1;
        at_jump ? framed_tail_[b] = true : can_[b] = false;
      }
    }
  }

  FramePlan plan() {
    FramePlan p;
    p.bare = BareBlocks(m_, std::move(can_), framed_tail_).paying();
    p.makes.assign(m_.blocks.size(), FramePlan::Makes::kNot);
    for (uint32_t b = 1; b < m_.blocks.size(); ++b) {
      if (!p.bare[b]) enter(b, p);
    }
    return p;
  }

 private:
  // A framed block makes the frame itself if all its predecessors are bare. Otherwise its bare
  // predecessors make the frame before they jump. That is safe: the block has several predecessors,
  // and critical edges are split, so those predecessors have no other successor.
  void enter(uint32_t b, FramePlan& p) const {
    const auto& preds = m_.blocks[b].preds;
    auto from_bare = [&](uint32_t q) { return p.bare[q] && !framed_tail_[q]; };
    if (preds.empty()) return;
    if (std::ranges::all_of(preds, from_bare)) {
      p.makes[b] = FramePlan::Makes::kAtStart;
      return;
    }
    for (uint32_t q : preds) {
      if (p.bare[q]) p.makes[q] = FramePlan::Makes::kAtEnd;
    }
  }

  const MachineFunction& m_;
  std::vector<bool> can_;
  std::vector<bool> framed_tail_;
};

}  // namespace

bool FramePlan::all_bare() const { return std::ranges::find(bare, false) == bare.end(); }

void ask_for_bare_blocks(MachineFunction& m) {
  if (m.osr || !may_be_bare(m, m.blocks[0])) return;
  auto count = static_cast<uint32_t>(m.blocks.size());
  std::vector<bool> can(count), no_tails(count);
  bool all = true;
  for (uint32_t b = 0; b < count; ++b) {
    bool may = may_be_bare(m, m.blocks[b]);
    all &= may;
    can[b] = may && m.blocks[b].loop == UINT32_MAX;
  }
  if (all) return;  // the body is bare throughout anyway, if its registers allow
  std::vector<bool> bare = BareBlocks(m, can, no_tails).allowed();
  if (!bare[0] || !part_returns(m, bare)) return;
  bare = BareBlocks(m, can, no_tails).paying();
  uint32_t size = 0;
  for (uint32_t b = 0; b < count; ++b) {
    if (bare[b]) size += m.blocks[b].end - m.blocks[b].begin;
  }
  if (size > kMostAsked) return;
  for (uint32_t b = 0; b < count; ++b) m.blocks[b].bare = bare[b];
}

FramePlan frame_from_start(const MachineFunction& m) {
  FramePlan p;
  p.bare.assign(m.blocks.size(), false);
  p.makes.assign(m.blocks.size(), FramePlan::Makes::kNot);
  return p;
}

FramePlan plan_frame(const MachineFunction& m, const Allocation& a) {
  return m.osr ? frame_from_start(m) : Outcome(m, a).plan();
}

}  // namespace uptier::jit::machine
