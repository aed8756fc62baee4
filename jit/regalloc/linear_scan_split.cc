// Where parts are split, and what giving way costs.
#include <algorithm>

#include "jit/regalloc/linear_scan.h"

namespace uptier::jit::machine {

void PieceList::add_behind(uint32_t p, const Piece& part) {
  auto id = static_cast<uint32_t>(pieces.size());
  if (order_of_.size() <= part.vreg) order_of_.resize(part.vreg + 1);
  if (pieces[part.vreg].next == UINT32_MAX) {
    order_of_[part.vreg] = static_cast<uint32_t>(orders_.size());
    orders_.push_back({part.vreg});
  }
  auto& parts = orders_[order_of_[part.vreg]];
  auto begins_after = [&](uint32_t at, uint32_t q) { return at < pieces[q].from; };
  parts.insert(std::upper_bound(parts.begin(), parts.end(), part.from, begins_after), id);
  pieces.push_back(part);
  pieces.back().next = pieces[p].next;
  pieces[p].next = id;
}

// Splits at a position inside the part. Returns the rest, which has no location yet.
uint32_t LinearScan::split(uint32_t p, uint32_t pos) {
  Piece rest = pieces_[p];
  auto first = live_.ranges.begin() + rest.ranges_at, last = live_.ranges.begin() + rest.ranges_end;
  auto ends_after = [](uint32_t at, const Range& r) { return at < r.to; };
  auto it = std::upper_bound(first, last, pos, ends_after);
  rest.ranges_at = static_cast<uint32_t>(it - live_.ranges.begin());
  rest.from = std::max(pos, it->from);
  auto use = std::lower_bound(live_.uses.begin() + rest.uses_at, live_.uses.begin() + rest.uses_end,
                              pos, [](const UsePoint& u, uint32_t at) { return u.pos < at; });
  rest.uses_at = static_cast<uint32_t>(use - live_.uses.begin());
  rest.at = Location();
  auto id = static_cast<uint32_t>(pieces_.size());
  list_.add_behind(p, rest);
  Piece& head = pieces_[p];
  head.uses_end = rest.uses_at;
  bool inside = it->from < pos;
  head.ranges_end = rest.ranges_at + (inside ? 1 : 0);
  head.to = inside ? pos : live_.ranges[head.ranges_end - 1].to;
  cursor_.push_back(rest.ranges_at);
  return id;
}

// Returns whether the part has to be in a register for the instruction at a position.
bool LinearScan::needs_register(const Piece& p, uint32_t pos) const {
  uint32_t end = (pos | 1) + 1;
  auto first = live_.uses.begin() + p.uses_at, last = live_.uses.begin() + p.uses_end;
  auto use =
      std::lower_bound(first, last, pos, [](const UsePoint& u, uint32_t at) { return u.pos < at; });
  for (; use != last && use->pos < end; ++use) {
    if (use->policy == Policy::kReg) return true;
  }
  return false;
}

// Returns the best place to end the part's location, at `latest` or before: outside of the loops
// that do not use it.
uint32_t LinearScan::split_position(uint32_t p, uint32_t latest) const {
  const Piece& piece = pieces_[p];
  auto first = live_.uses.begin() + piece.uses_at, last = live_.uses.begin() + piece.uses_end;
  auto use = std::lower_bound(first, last, latest,
                              [](const UsePoint& u, uint32_t at) { return u.pos < at; });
  uint32_t earliest = use == first ? piece.from + 1 : ((use - 1)->pos | 1) + 1;
  uint32_t best = latest;
  uint32_t l = m_.blocks[block_of(latest)].loop;
  for (; l != kNone; l = m_.loops[l].parent) {
    uint32_t at = 2 * m_.blocks[m_.loops[l].begin].begin;
    if (at < earliest || at > latest) break;
    best = at;
  }
  return best;
}

// Returns where a part that is in memory comes back for a use: in front of it, or of the loops
// around it that the part runs into. Never at or before the current position: that is decided.
uint32_t LinearScan::reload_position(uint32_t p, uint32_t use_pos) const {
  uint32_t best = use_pos & ~1u;
  uint32_t l = m_.blocks[block_of(use_pos)].loop;
  for (; l != kNone; l = m_.loops[l].parent) {
    uint32_t at = 2 * m_.blocks[m_.loops[l].begin].begin;
    if (at <= std::max(pieces_[p].from, now_)) break;
    best = at;
  }
  return best;
}

// Returns the first use that is worth a register, or the end of the uses. A use that can read
// memory is when another follows that runs as often, or when it can be loaded in front of its loop.
uint32_t LinearScan::find_reload(uint32_t part) const {
  const Piece& p = pieces_[part];
  for (uint32_t u = p.uses_at; u < p.uses_end; ++u) {
    const UsePoint& use = live_.uses[u];
    bool can_reload = (use.pos & ~1u) > std::max(p.from, now_);
    if (!can_reload) continue;
    if (use.policy == Policy::kReg) return u;
    if (use.policy != Policy::kAny) continue;
    uint32_t at = reload_position(part, use.pos);
    if (at != (use.pos & ~1u) && frequency(at - 1) < 0.5f * frequency(use.pos)) return u;
    if (u + 1 >= p.uses_end) continue;
    const UsePoint& following = live_.uses[u + 1];
    if (following.policy != Policy::kFixed && following.weight >= 0.5f * use.weight) return u;
  }
  return p.uses_end;
}

// Returns whether most of those who come to a block with the vreg of a part have it in a register.
// The part itself, and all behind it, count as memory.
bool LinearScan::arrives_in_register(uint32_t part, uint32_t block) const {
  float all = 0, in_register = 0;
  for (uint32_t k = arrivals_at_[block]; k < arrivals_at_[block + 1]; ++k) {
    auto [from, frequency] = arrivals_[k];
    all += frequency;
    uint32_t end = 2 * m_.blocks[from].end - 1;
    if (end >= pieces_[part].from) continue;
    if (pieces_[list_.at(pieces_[part].vreg, end)].at.is_reg()) in_register += frequency;
  }
  return in_register > 0.5f * all;
}

// Returns the start of a block before `latest` at which the value may as well be in a register
// again, because it mostly arrives in one: what is behind a call on another path. Or `latest`.
uint32_t LinearScan::rejoin_position(uint32_t part, uint32_t latest) const {
  const Piece& p = pieces_[part];
  uint32_t earliest = std::max(p.from, now_) + 1, last = std::min(p.to, latest);
  uint32_t b = block_of(p.from) + 1;
  uint32_t end = std::min<uint32_t>(b + kBlocksAhead, static_cast<uint32_t>(m_.blocks.size()));
  for (uint32_t k = p.ranges_at; b < end && 2 * m_.blocks[b].begin < last; ++b) {
    uint32_t at = 2 * m_.blocks[b].begin;
    while (k < p.ranges_end && live_.ranges[k].to <= at) ++k;
    if (k == p.ranges_end) break;
    bool live = at >= earliest && live_.ranges[k].from <= at;
    if (!live) continue;
    bool wanted = m_.blocks[b].loop != kNone || weight_between(p.vreg, at, p.to) > 0;
    if (wanted && arrives_in_register(part, b)) return at;
  }
  return latest;
}

// Puts the whole part in memory, up to the next use that is worth a register, or a block where it
// is in one anyway.
void LinearScan::spill_whole(uint32_t p) {
  uint32_t use = find_reload(p);
  uint32_t at = kNone;
  if (use != pieces_[p].uses_end) {
    at = reload_position(p, live_.uses[use].pos);
    if (at <= pieces_[p].from) at = kNone;
  }
  // A first part was never in a register.
  if (p >= m_.vregs.size()) at = rejoin_position(p, at);
  if (at < pieces_[p].to) push(split(p, at));
  pieces_[p].at = Location::slot(pieces_[p].vreg);
  spilled_[pieces_[p].vreg] = true;
}

void LinearScan::spill_from(uint32_t p, uint32_t pos) {
  spill_whole(pos > pieces_[p].from ? split(p, pos) : p);
}

void LinearScan::evict_active(uint32_t p, uint32_t pos) {
  const Piece& piece = pieces_[p];
  bool unused = piece.uses_at == piece.uses_end || live_.uses[piece.uses_at].pos >= pos;
  // A part that was never used in its register need not have come there.
  if (p >= m_.vregs.size() && unused) return spill_whole(p);
  spill_from(p, std::max(split_position(p, pos), piece.from));
}

// Frees a register for `cur`.
void LinearScan::evict(unsigned reg, uint32_t cur) {
  uint32_t pos = pieces_[cur].from;
  if (active_[reg] != kNone) {
    evict_active(active_[reg], pos);
    active_[reg] = kNone;
  }
  inactive_.sweep(reg, pieces_[cur].to, [&](uint32_t p) {
    uint32_t due = range(pieces_[p], cursor_[p]).from;
    if (intersection(cur, p) == kNone) return due;
    push(split(p, due));
    return Holes::kNone;
  });
}

// What it costs to have the part in memory while `cur` has a register.
float LinearScan::spill_cost(uint32_t p, uint32_t cur) const {
  uint32_t pos = pieces_[cur].from, v = pieces_[p].vreg;
  uint32_t from = pos, to = pieces_[cur].to;
  uint32_t l = m_.blocks[block_of(pos)].loop;
  for (; l != kNone; l = m_.loops[l].parent) {
    from = std::min(from, 2 * m_.blocks[m_.loops[l].begin].begin);
    to = std::max(to, 2 * m_.blocks[m_.loops[l].end - 1].end);
  }
  float cost = weight_between(v, from, to);
  auto last = live_.uses.begin() + live_.uses_at[v + 1];
  auto next = std::lower_bound(live_.uses.begin() + live_.uses_at[v], last, to,
                               [](const UsePoint& u, uint32_t at) { return u.pos < at; });
  if (next != last) cost += next->weight;
  if (!spilled_[v]) cost += std::min(frequency(pos), frequency(pieces_[v].from));
  return cost;
}

float LinearScan::victim_cost(unsigned reg, uint32_t cur) {
  uint32_t pos = pieces_[cur].from;
  float cost = 0;
  if (active_[reg] != kNone) {
    if (needs_register(pieces_[active_[reg]], pos)) return kNever;
    cost += spill_cost(active_[reg], cur);
  }
  if (cur < m_.vregs.size()) return cost;
  for (uint32_t p : inactive_.due_before(reg, pieces_[cur].to)) {
    if (intersection(cur, p) != kNone) cost += spill_cost(p, cur);
  }
  return cost;
}

}  // namespace uptier::jit::machine
