// What the scan knows beforehand: clobbers, hints and sums of weights.
#include <algorithm>

#include "jit/regalloc/linear_scan.h"

namespace uptier::jit::machine {
namespace {

constexpr float kOften = 2;  // of the times that a frame is made

}  // namespace

LinearScan::LinearScan(const MachineFunction& m, const LiveRanges& live)
    : m_(m), live_(live), pieces_(list_.pieces) {
  block_of_.resize(m.insts.size() + 1);
  for (uint32_t b = 0; b < m.blocks.size(); ++b) {
    std::fill(block_of_.begin() + m.blocks[b].begin, block_of_.begin() + m.blocks[b].end, b);
  }
  auto vregs = static_cast<uint32_t>(m.vregs.size());
  spilled_.resize(vregs);
  pieces_.resize(vregs);
  for (uint32_t v = 0; v < vregs; ++v) {
    auto ranges = live.ranges_of(v);
    Piece& p = pieces_[v];
    p.vreg = v;
    p.ranges_at = live.ranges_at[v];
    p.ranges_end = live.ranges_at[v + 1];
    p.uses_at = live.uses_at[v];
    p.uses_end = live.uses_at[v + 1];
    if (ranges.empty()) continue;
    p.from = ranges.front().from;
    p.to = ranges.back().to;
  }
  std::fill_n(active_, kRegCount, kNone);
  collect_clobbers();
  collect_hints();
  sum_weights();
  collect_arrivals();
  find_hot_blocks();
}

void LinearScan::collect_arrivals() {
  arrivals_at_.assign(m_.blocks.size() + 1, 0);
  auto edges_of = [&](const MBlock& b) { return m_.edges_of(m_.terminator(b)); };
  for (const MBlock& b : m_.blocks) {
    for (const MEdge& e : edges_of(b)) ++arrivals_at_[e.to + 1];
  }
  for (size_t b = 1; b < arrivals_at_.size(); ++b) arrivals_at_[b] += arrivals_at_[b - 1];
  arrivals_.resize(arrivals_at_.back());
  std::vector<uint32_t> at(arrivals_at_.begin(), arrivals_at_.end() - 1);
  for (uint32_t b = 0; b < m_.blocks.size(); ++b) {
    for (const MEdge& e : edges_of(m_.blocks[b])) {
      float frequency = std::min(m_.blocks[b].frequency, m_.blocks[e.to].frequency);
      arrivals_[at[e.to]++] = {b, frequency};
    }
  }
}

void LinearScan::collect_clobbers() {
  call_costs_.push_back(0);
  for (uint32_t b = 0; b < m_.blocks.size(); ++b) {
    const MBlock& block = m_.blocks[b];
    RegMask kept = block.bare ? kCalleeSaved : 0;
    for (uint32_t n = block.begin; n < block.end; ++n) {
      if (kept != 0) clobbers_.push_back({2 * n, kept});
      RegMask lost = clobbers(m_.insts[n]) | kept;
      if (lost != 0) clobbers_.push_back({2 * n + 1, lost});
      ever_clobbered_ |= lost;
      if ((lost & kCallClobbers) != kCallClobbers) continue;
      calls_.push_back(2 * n + 1);
      call_costs_.push_back(call_costs_.back() + 2 * block.frequency);
    }
    if (b != 0 && block.bare != m_.blocks[b - 1].bare) borders_.push_back(2 * block.begin);
  }
}

void LinearScan::find_hot_blocks() {
  for (uint32_t b = 0; b < m_.blocks.size(); ++b) {
    const MBlock& block = m_.blocks[b];
    auto bare = [&](uint32_t p) { return m_.blocks[p].bare; };
    bool makes_frame = !block.bare && (b == 0 || std::ranges::any_of(block.preds, bare));
    if (makes_frame) frames_ += block.frequency;
  }
  auto next = static_cast<uint32_t>(m_.blocks.size());
  next_hot_.resize(next, next);
  for (uint32_t b = next; b-- > 0;) {
    if (m_.blocks[b].frequency > kOften * frames_) next = b;
    next_hot_[b] = next;
  }
}

bool LinearScan::lives_in_loops(const Piece& p) const {
  for (uint32_t k = p.ranges_at; k < p.ranges_end; ++k) {
    Range r = range(p, k);
    if (r.from < r.to && next_hot_[block_of(r.from)] <= block_of(r.to - 1)) return true;
  }
  return false;
}

void LinearScan::hint(Vreg a, Vreg b, float weight) {
  if (!a.valid() || !b.valid() || a == b || m_.class_of(a) != m_.class_of(b)) return;
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)}) {
    hints_.push_back({hint_at_[x.index()], y.index(), weight, false});
    hint_at_[x.index()] = static_cast<uint32_t>(hints_.size() - 1);
  }
}

void LinearScan::hint_fixed(Vreg a, unsigned reg, float weight) {
  if (!a.valid()) return;
  hints_.push_back({hint_at_[a.index()], reg, weight, true});
  hint_at_[a.index()] = static_cast<uint32_t>(hints_.size() - 1);
}

void LinearScan::collect_hints() {
  hint_at_.assign(m_.vregs.size(), kNone);
  for (const MBlock& b : m_.blocks) {
    for (uint32_t n = b.begin; n < b.end; ++n) add_inst_hints(m_.insts[n], b.frequency);
    const MInst& t = m_.terminator(b);
    if (t.edge_count != 1) continue;
    const MEdge& e = m_.edges_of(t)[0];
    auto params = m_.params_of(m_.blocks[e.to]);
    for (uint32_t k = 0; k < params.size(); ++k) {
      hint(params[k], m_.edge_args[e.args_at + k].vreg, b.frequency);
    }
  }
}

void LinearScan::add_inst_hints(const MInst& i, float weight) {
  const Operand* o = m_.operands.data() + i.operands_at;
  for (uint32_t k = 0; k < i.count(); ++k) {
    if (o[k].policy == Policy::kFixed && o[k].fixed.is_reg()) {
      hint_fixed(o[k].vreg, o[k].fixed.index(), weight);
    }
  }
  if (i.d == kNoOperand) return;
  Vreg d = o[i.d].vreg;
  for (const SharedWith& s : shares_register(m_, i)) {
    if (s.operand != kNoOperand) hint(d, o[s.operand].vreg, s.weight * weight);
  }
}

void LinearScan::sum_weights() {
  weight_sums_.resize(live_.uses.size() + 1);
  double sum = 0;
  for (size_t u = 0; u < live_.uses.size(); ++u) {
    weight_sums_[u] = sum;
    sum += live_.uses[u].weight;
  }
  weight_sums_.back() = sum;
}

float LinearScan::weight_between(uint32_t v, uint32_t from, uint32_t to) const {
  auto first = live_.uses.begin() + live_.uses_at[v],
       last = live_.uses.begin() + live_.uses_at[v + 1];
  auto before = [](const UsePoint& u, uint32_t pos) { return u.pos < pos; };
  auto a = std::lower_bound(first, last, from, before);
  auto b = std::lower_bound(a, last, to, before);
  return static_cast<float>(weight_sums_[static_cast<size_t>(b - live_.uses.begin())] -
                            weight_sums_[static_cast<size_t>(a - live_.uses.begin())]);
}

float LinearScan::cost_of_calls(const Piece& p) const {
  double sum = 0;
  auto call = calls_.begin();
  for (uint32_t k = p.ranges_at; k < p.ranges_end; ++k) {
    Range r = range(p, k);
    if (r.from >= r.to) continue;
    call = std::lower_bound(call, calls_.end(), r.from);
    auto end = std::lower_bound(call, calls_.end(), r.to);
    sum += call_costs_[static_cast<size_t>(end - calls_.begin())] -
           call_costs_[static_cast<size_t>(call - calls_.begin())];
    call = end;
  }
  return static_cast<float>(sum);
}

}  // namespace uptier::jit::machine
