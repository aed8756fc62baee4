#include "jit/regalloc/linear_scan.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>

namespace uptier::jit::machine {
namespace {

// The cost of saving and restoring a callee-saved register, in units of block frequency.
constexpr float kSaveCost = 2;

// Calls `visit(reg)` for each register of a mask.
template <typename Visit>
void each(RegMask mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<unsigned>(std::countr_zero(mask)));
}

}  // namespace

LinearScan::LinearScan(const MachineFunction& m, const LiveRanges& live)
    : m_(m),
      live_(live),
      facts_(m, live),
      parts_(m, live, facts_),
      pieces_(parts_.list.pieces),
      cursor_(parts_.cursor) {
  std::fill_n(active_, kRegCount, kNone);
}

PieceList LinearScan::run() {
  for (uint32_t v = 0; v < m_.vregs.size(); ++v) {
    if (pieces_[v].from != pieces_[v].to) parts_.push(v);
  }
  cursor_.resize(pieces_.size());
  for (uint32_t v = 0; v < m_.vregs.size(); ++v) cursor_[v] = pieces_[v].ranges_at;
  while (!parts_.queue.empty()) {
    uint32_t cur = parts_.queue.top().piece;
    parts_.queue.pop();
    process(cur);
  }
  return std::move(parts_.list);
}

void LinearScan::process(uint32_t cur) {
  parts_.now = pieces_[cur].from;
  advance(parts_.now);
  find_free(cur);
  if (take_free(cur)) return;
  if (split_at_border(cur)) {
    find_free(cur);
    if (take_free(cur)) return;
  }
  RegMask regs = allocatable(m_.class_of(Vreg(pieces_[cur].vreg)));
  [[maybe_unused]] bool taken = take_blocked(cur, regs, std::numeric_limits<float>::infinity());
  assert(taken);
}

// Splits a part that lies in both bare and framed blocks. Returns whether it did.
bool LinearScan::split_at_border(uint32_t cur) {
  auto border = std::upper_bound(facts_.borders.begin(), facts_.borders.end(), pieces_[cur].from);
  if (border == facts_.borders.end() || *border >= pieces_[cur].to) return false;
  parts_.push(parts_.split(cur, *border));
  return true;
}

// Moves parts between active, inactive and done, up to a position.
void LinearScan::advance(uint32_t pos) {
  if (pos < next_event_) return;
  next_event_ = kNone;
  for (unsigned reg = 0; reg < kRegCount; ++reg) {
    uint32_t was_active = active_[reg];
    active_[reg] = kNone;
    inactive_.sweep(reg, pos + 1, [&](uint32_t p) {
      if (pieces_[p].to <= pos) return Holes::kNone;
      uint32_t from = live_from(p, pos);
      if (from > pos) return from;
      active_[reg] = p;
      return Holes::kNone;
    });
    if (was_active != kNone && pieces_[was_active].to > pos) {
      uint32_t from = live_from(was_active, pos);
      if (from <= pos) {
        active_[reg] = was_active;
      } else {
        inactive_.add(reg, was_active, from);
      }
    }
    next_event_ = std::min(next_event_, inactive_.first_due(reg));
    uint32_t now = active_[reg];
    if (now != kNone)
      next_event_ = std::min(next_event_, facts_.range(pieces_[now], cursor_[now]).to);
  }
}

// Returns the start of the part's first range that ends after `pos`: at or before `pos` if the part
// is live there.
uint32_t LinearScan::live_from(uint32_t p, uint32_t pos) {
  uint32_t& k = cursor_[p];
  while (facts_.range(pieces_[p], k).to <= pos) ++k;
  return facts_.range(pieces_[p], k).from;
}

// Returns the first position at which both parts are live, or kNone.
uint32_t LinearScan::intersection(uint32_t a, uint32_t b) const {
  const Piece &x = pieces_[a], &y = pieces_[b];
  uint32_t i = cursor_[a], k = cursor_[b];
  while (i < x.ranges_end && k < y.ranges_end) {
    Range r = facts_.range(x, i), s = facts_.range(y, k);
    if (r.from >= x.to || s.from >= y.to) break;
    if (r.to <= s.from) {
      ++i;
    } else if (s.to <= r.from) {
      ++k;
    } else {
      return std::max(r.from, s.from);
    }
  }
  return kNone;
}

void LinearScan::find_clobbers(uint32_t cur) {
  const Piece& p = pieces_[cur];
  RegMask open = allocatable(m_.class_of(Vreg(p.vreg))) & facts_.ever_clobbered;
  auto it = facts_.clobbers.begin();
  for (uint32_t k = p.ranges_at; k < p.ranges_end && open != 0; ++k) {
    Range r = facts_.range(p, k);
    if (r.from >= r.to) continue;
    auto before = [](const auto& c, uint32_t pos) { return c.first < pos; };
    it = std::lower_bound(it, facts_.clobbers.end(), r.from, before);
    for (; it != facts_.clobbers.end() && it->first < r.to && open != 0; ++it) {
      each(it->second & open, [&](unsigned reg) { clobbered_at_[reg] = it->first; });
      open &= ~it->second;
    }
  }
}

void LinearScan::find_free(uint32_t cur) {
  RegMask regs = allocatable(m_.class_of(Vreg(pieces_[cur].vreg)));
  each(regs, [&](unsigned reg) { clobbered_at_[reg] = kNone; });
  find_clobbers(cur);
  bool child = cur >= m_.vregs.size();
  each(regs, [&](unsigned reg) {
    free_until_[reg] = active_[reg] != kNone ? 0 : clobbered_at_[reg];
    if (!child || free_until_[reg] == 0) return;
    uint32_t before = std::min(free_until_[reg], pieces_[cur].to);
    for (uint32_t p : inactive_.due_before(reg, before)) {
      free_until_[reg] = std::min(free_until_[reg], intersection(cur, p));
    }
  });
}

// Returns the register with the best hints; without hints, one that need not be saved.
unsigned LinearScan::best_register(uint32_t cur, RegMask candidates) {
  float score[kRegCount] = {};
  uint32_t v = pieces_[cur].vreg, pos = pieces_[cur].from;
  each(candidates & kCalleeSaved & ~used_, [&](unsigned reg) { score[reg] = -kSaveCost; });
  each(candidates & kCalleeSaved & used_, [&](unsigned reg) { score[reg] = -1e-4f; });
  for (uint32_t h = facts_.hint_at[v]; h != kNone; h = facts_.hints[h].next) {
    const ScanFacts::Hint& hint = facts_.hints[h];
    Location at =
        hint.fixed ? Location::reg(hint.other) : pieces_[parts_.list.at(hint.other, pos)].at;
    if (at.is_reg()) score[at.index()] += hint.weight;
  }
  if (cur != v) add_own_hints(cur, score);
  auto best = static_cast<unsigned>(std::countr_zero(candidates));
  each(candidates, [&](unsigned reg) {
    if (score[reg] > score[best]) best = reg;
  });
  return best;
}

// Adds hints from the earlier parts of the vreg: the best register saves a move from the part
// before, on the edges to the block where this part begins, or back to the header of its loop.
void LinearScan::add_own_hints(uint32_t cur, float* score) const {
  uint32_t v = pieces_[cur].vreg, pos = pieces_[cur].from, block = facts_.block_of(pos);
  auto add = [&](uint32_t at, float weight) {
    uint32_t p = parts_.list.at(v, at);
    bool before = p != cur && pieces_[p].from <= at;
    if (before && pieces_[p].at.is_reg()) score[pieces_[p].at.index()] += weight;
  };
  if (2 * m_.blocks[block].begin == pos) {
    for (uint32_t k = facts_.arrivals_at[block]; k < facts_.arrivals_at[block + 1]; ++k) {
      auto [from, weight] = facts_.arrivals[k];
      if (2 * m_.blocks[from].end <= pos) add(2 * m_.blocks[from].end - 1, weight);
    }
  } else {
    add(pos - 1, facts_.frequency(pos));
  }
  uint32_t l = m_.blocks[block].loop;
  if (l != kNone) add(2 * m_.blocks[m_.loops[l].begin].begin, 0.5f * facts_.frequency(pos));
}

// Takes a register that stays free while the part lives. Returns whether there is one.
bool LinearScan::take_free(uint32_t cur) {
  const Piece& p = pieces_[cur];
  RegMask free = 0;
  uint32_t longest = 0;
  RegMask regs = allocatable(m_.class_of(Vreg(p.vreg)));
  each(regs, [&](unsigned reg) {
    if (free_until_[reg] >= p.to) free |= mask_of(reg);
    longest = std::max(longest, free_until_[reg]);
  });
  if (free == 0) return false;
  unsigned reg = best_register(cur, free);
  bool must_save = (mask_of(reg) & kCalleeSaved & ~used_) != 0;
  if (must_save) {
    RegMask others = regs & (~kCalleeSaved | used_);
    if (avoid_saving(cur, regs & ~kCalleeSaved)) return true;
    if (!facts_.lives_in_loops(p) && take_blocked(cur, others, 0.5f * kSaveCost * facts_.frames))
      return true;
  }
  assign(cur, reg);
  return true;
}

// Avoids a register that would have to be saved, if the uses after the first call are rare, or if
// the calls are rare. In the first case a register that calls clobber serves up to that call; in
// the second the value is in memory around the calls. No such register is free to the end. Returns
// whether it avoided one.
bool LinearScan::avoid_saving(uint32_t cur, RegMask clobbered) {
  const Piece& p = pieces_[cur];
  uint32_t until = 0;
  each(clobbered, [&](unsigned r) { until = std::max(until, free_until_[r]); });
  float behind = facts_.weight_between(p.vreg, until, p.to) + facts_.frequency(until);
  // In a loop, one move too many costs more than is saved here.
  float around = facts_.lives_in_loops(p) ? kNever : facts_.cost_of_calls(p);
  if (std::min(behind, around) >= kSaveCost * facts_.frames) return false;
  if ((until & ~1u) > p.from + 1) {
    RegMask partial = 0;
    each(clobbered, [&](unsigned r) { partial |= free_until_[r] == until ? mask_of(r) : 0; });
    take_until(cur, best_register(cur, partial), until);
    return true;
  }
  bool to_memory = until == (p.from | 1) && !parts_.needs_register(p, p.from);
  if (to_memory) parts_.spill_whole(cur);
  return to_memory;
}

void LinearScan::assign(uint32_t cur, unsigned reg) {
  Piece& p = pieces_[cur];
  p.at = Location::reg(reg);
  used_ |= mask_of(reg);
  active_[reg] = cur;
  cursor_[cur] = p.ranges_at;
  while (facts_.range(p, cursor_[cur]).to <= p.from) ++cursor_[cur];
  next_event_ = std::min(next_event_, facts_.range(p, cursor_[cur]).to);
}

// Takes a register up to where it is lost. The rest becomes a new part.
void LinearScan::take_until(uint32_t cur, unsigned reg, uint32_t blocked) {
  if (blocked < pieces_[cur].to) {
    uint32_t at = parts_.split_position(cur, blocked & ~1u);
    if (at > pieces_[cur].from) {
      parts_.push(parts_.split(cur, at));
    } else {
      parts_.spill_from(cur, blocked);
    }
  }
  assign(cur, reg);
}

// Every one of these registers is taken for some time, so something is split or spilled, whichever
// costs least. Returns whether that costs less than `most`; if not, nothing is done.
bool LinearScan::take_blocked(uint32_t cur, RegMask regs, float most) {
  const Piece& p = pieces_[cur];
  bool must = parts_.needs_register(p, p.from);
  // Registers that are free at the beginning, all up to the same position.
  uint32_t until = 0;
  each(regs, [&](unsigned reg) { until = std::max(until, free_until_[reg]); });
  RegMask partial = 0;
  each(regs, [&](unsigned reg) { partial |= free_until_[reg] == until ? mask_of(reg) : 0; });
  float partial_cost = kNever;
  bool useful =
      must || facts_.weight_between(p.vreg, p.from, until) > 0.5f * facts_.frequency(p.from);
  if (useful && (until & ~1u) > p.from) {
    partial_cost = 2 * facts_.frequency(parts_.split_position(cur, until & ~1u));
  }
  // A register whose holder is cheaper to evict.
  unsigned victim = kRegCount;
  float victim_at = kNever;
  each(regs, [&](unsigned reg) {
    if (clobbered_at_[reg] <= p.from + (must ? 1 : 0)) return;
    float cost = victim_cost(reg, cur);
    if (clobbered_at_[reg] < p.to) cost += 2 * facts_.frequency(clobbered_at_[reg]);
    if (cost < victim_at) {
      victim_at = cost;
      victim = reg;
    }
  });
  float own = must ? kNever : spill_cost(cur, cur);
  if (std::min({own, partial_cost, victim_at}) >= most) return false;
  if (own <= victim_at && own <= partial_cost) {
    parts_.spill_whole(cur);
  } else if (partial_cost <= victim_at) {
    take_until(cur, best_register(cur, partial), until);
  } else {
    evict(victim, cur);
    take_until(cur, victim, clobbered_at_[victim]);
  }
  return true;
}

void LinearScan::evict_active(uint32_t p, uint32_t pos) {
  const Piece& piece = pieces_[p];
  bool unused = piece.uses_at == piece.uses_end || live_.uses[piece.uses_at].pos >= pos;
  // A part that was not used in its register yet should not have been moved there.
  if (p >= m_.vregs.size() && unused) return parts_.spill_whole(p);
  parts_.spill_from(p, std::max(parts_.split_position(p, pos), piece.from));
}

// Frees a register for `cur`.
void LinearScan::evict(unsigned reg, uint32_t cur) {
  uint32_t pos = pieces_[cur].from;
  if (active_[reg] != kNone) {
    evict_active(active_[reg], pos);
    active_[reg] = kNone;
  }
  inactive_.sweep(reg, pieces_[cur].to, [&](uint32_t p) {
    uint32_t due = facts_.range(pieces_[p], cursor_[p]).from;
    if (intersection(cur, p) == kNone) return due;
    parts_.push(parts_.split(p, due));
    return Holes::kNone;
  });
}

// Returns the cost of keeping part `p` in memory while `cur` has a register.
float LinearScan::spill_cost(uint32_t p, uint32_t cur) const {
  uint32_t pos = pieces_[cur].from, v = pieces_[p].vreg;
  uint32_t from = pos, to = pieces_[cur].to;
  uint32_t l = m_.blocks[facts_.block_of(pos)].loop;
  for (; l != kNone; l = m_.loops[l].parent) {
    from = std::min(from, 2 * m_.blocks[m_.loops[l].begin].begin);
    to = std::max(to, 2 * m_.blocks[m_.loops[l].end - 1].end);
  }
  float cost = facts_.weight_between(v, from, to);
  auto last = live_.uses.begin() + live_.uses_at[v + 1];
  auto next = std::lower_bound(live_.uses.begin() + live_.uses_at[v], last, to,
                               [](const UsePoint& u, uint32_t at) { return u.pos < at; });
  if (next != last) cost += next->weight;
  if (!parts_.spilled[v])
    cost += std::min(facts_.frequency(pos), facts_.frequency(pieces_[v].from));
  return cost;
}

float LinearScan::victim_cost(unsigned reg, uint32_t cur) {
  uint32_t pos = pieces_[cur].from;
  float cost = 0;
  if (active_[reg] != kNone) {
    if (parts_.needs_register(pieces_[active_[reg]], pos)) return kNever;
    cost += spill_cost(active_[reg], cur);
  }
  if (cur < m_.vregs.size()) return cost;
  for (uint32_t p : inactive_.due_before(reg, pieces_[cur].to)) {
    if (intersection(cur, p) != kNone) cost += spill_cost(p, cur);
  }
  return cost;
}

PieceList scan(const MachineFunction& m, const LiveRanges& live) {
  return LinearScan(m, live).run();
}

}  // namespace uptier::jit::machine
