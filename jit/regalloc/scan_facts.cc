#include "jit/regalloc/scan_facts.h"

#include <algorithm>
#include <utility>

namespace uptier::jit::machine {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
// A hot block runs more than this many times as often as the frame is made.
constexpr float kOften = 2;

}  // namespace

ScanFacts::ScanFacts(const MachineFunction& m, const LiveRanges& live) : m_(m), live_(live) {
  block_of_inst.resize(m.insts.size() + 1);
  for (uint32_t b = 0; b < m.blocks.size(); ++b) {
    std::fill(block_of_inst.begin() + m.blocks[b].begin, block_of_inst.begin() + m.blocks[b].end,
              b);
  }
  collect_clobbers();
  collect_hints();
  sum_weights();
  collect_arrivals();
  find_hot_blocks();
}

void ScanFacts::collect_arrivals() {
  arrivals_at.assign(m_.blocks.size() + 1, 0);
  auto edges_of = [&](const MBlock& b) { return m_.edges_of(m_.terminator(b)); };
  for (const MBlock& b : m_.blocks) {
    for (const MEdge& e : edges_of(b)) ++arrivals_at[e.to + 1];
  }
  for (size_t b = 1; b < arrivals_at.size(); ++b) arrivals_at[b] += arrivals_at[b - 1];
  arrivals.resize(arrivals_at.back());
  std::vector<uint32_t> at(arrivals_at.begin(), arrivals_at.end() - 1);
  for (uint32_t b = 0; b < m_.blocks.size(); ++b) {
    for (const MEdge& e : edges_of(m_.blocks[b])) {
      float frequency = std::min(m_.blocks[b].frequency, m_.blocks[e.to].frequency);
      arrivals[at[e.to]++] = {b, frequency};
    }
  }
}

void ScanFacts::collect_clobbers() {
  call_costs.push_back(0);
  for (uint32_t b = 0; b < m_.blocks.size(); ++b) {
    const MBlock& block = m_.blocks[b];
    RegMask kept = block.bare ? kCalleeSaved : 0;
    for (uint32_t n = block.begin; n < block.end; ++n) {
      if (kept != 0) clobbers.push_back({2 * n, kept});
      RegMask lost = machine::clobbers(m_.insts[n]) | kept;
      if (lost != 0) clobbers.push_back({2 * n + 1, lost});
      ever_clobbered |= lost;
      if ((lost & kCallClobbers) != kCallClobbers) continue;
      calls.push_back(2 * n + 1);
      call_costs.push_back(call_costs.back() + 2 * block.frequency);
    }
    if (b != 0 && block.bare != m_.blocks[b - 1].bare) borders.push_back(2 * block.begin);
  }
}

void ScanFacts::find_hot_blocks() {
  for (uint32_t b = 0; b < m_.blocks.size(); ++b) {
    const MBlock& block = m_.blocks[b];
    auto bare = [&](uint32_t p) { return m_.blocks[p].bare; };
    bool makes_frame = !block.bare && (b == 0 || std::ranges::any_of(block.preds, bare));
    if (makes_frame) frames += block.frequency;
  }
  auto next = static_cast<uint32_t>(m_.blocks.size());
  next_hot.resize(next, next);
  for (uint32_t b = next; b-- > 0;) {
    if (m_.blocks[b].frequency > kOften * frames) next = b;
    next_hot[b] = next;
  }
}

bool ScanFacts::lives_in_loops(const Piece& p) const {
  for (uint32_t k = p.ranges_at; k < p.ranges_end; ++k) {
    Range r = range(p, k);
    if (r.from < r.to && next_hot[block_of(r.from)] <= block_of(r.to - 1)) return true;
  }
  return false;
}

void ScanFacts::hint(Vreg a, Vreg b, float weight) {
  if (!a.valid() || !b.valid() || a == b || m_.class_of(a) != m_.class_of(b)) return;
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)}) {
    hints.push_back({hint_at[x.index()], y.index(), weight, false});
    hint_at[x.index()] = static_cast<uint32_t>(hints.size() - 1);
  }
}

void ScanFacts::hint_fixed(Vreg a, unsigned reg, float weight) {
  if (!a.valid()) return;
  hints.push_back({hint_at[a.index()], reg, weight, true});
  hint_at[a.index()] = static_cast<uint32_t>(hints.size() - 1);
}

void ScanFacts::collect_hints() {
  hint_at.assign(m_.vregs.size(), kNone);
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

void ScanFacts::add_inst_hints(const MInst& i, float weight) {
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

void ScanFacts::sum_weights() {
  weight_sums.resize(live_.uses.size() + 1);
  double sum = 0;
  for (size_t u = 0; u < live_.uses.size(); ++u) {
    weight_sums[u] = sum;
    sum += live_.uses[u].weight;
  }
  weight_sums.back() = sum;
}

float ScanFacts::weight_between(uint32_t v, uint32_t from, uint32_t to) const {
  auto first = live_.uses.begin() + live_.uses_at[v],
       last = live_.uses.begin() + live_.uses_at[v + 1];
  auto before = [](const UsePoint& u, uint32_t pos) { return u.pos < pos; };
  auto a = std::lower_bound(first, last, from, before);
  auto b = std::lower_bound(a, last, to, before);
  return static_cast<float>(weight_sums[static_cast<size_t>(b - live_.uses.begin())] -
                            weight_sums[static_cast<size_t>(a - live_.uses.begin())]);
}

float ScanFacts::cost_of_calls(const Piece& p) const {
  double sum = 0;
  auto call = calls.begin();
  for (uint32_t k = p.ranges_at; k < p.ranges_end; ++k) {
    Range r = range(p, k);
    if (r.from >= r.to) continue;
    call = std::lower_bound(call, calls.end(), r.from);
    auto end = std::lower_bound(call, calls.end(), r.to);
    sum += call_costs[static_cast<size_t>(end - calls.begin())] -
           call_costs[static_cast<size_t>(call - calls.begin())];
    call = end;
  }
  return static_cast<float>(sum);
}

}  // namespace uptier::jit::machine
