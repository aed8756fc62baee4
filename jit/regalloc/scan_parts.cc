#include "jit/regalloc/scan_parts.h"

#include <algorithm>

namespace uptier::jit::machine {

ScanParts::ScanParts(const MachineFunction& m, const LiveRanges& live, const ScanFacts& facts)
    : m_(m), live_(live), facts_(facts) {
  auto vregs = static_cast<uint32_t>(m.vregs.size());
  spilled.resize(vregs);
  list.pieces.resize(vregs);
  for (uint32_t v = 0; v < vregs; ++v) {
    auto ranges = live.ranges_of(v);
    Piece& p = list.pieces[v];
    p.vreg = v;
    p.ranges_at = live.ranges_at[v];
    p.ranges_end = live.ranges_at[v + 1];
    p.uses_at = live.uses_at[v];
    p.uses_end = live.uses_at[v + 1];
    if (ranges.empty()) continue;
    p.from = ranges.front().from;
    p.to = ranges.back().to;
  }
}

void ScanParts::push(uint32_t p) {
  const Piece& piece = list.pieces[p];
  auto weight =
      static_cast<float>(facts_.weight_sums[piece.uses_end] - facts_.weight_sums[piece.uses_at]);
  queue.push({piece.from, weight, p});
}

// Splits a part at a position inside it. Returns the rest, which has no location yet.
uint32_t ScanParts::split(uint32_t p, uint32_t pos) {
  Piece rest = list.pieces[p];
  auto first = live_.ranges.begin() + rest.ranges_at, last = live_.ranges.begin() + rest.ranges_end;
  auto ends_after = [](uint32_t at, const Range& r) { return at < r.to; };
  auto it = std::upper_bound(first, last, pos, ends_after);
  rest.ranges_at = static_cast<uint32_t>(it - live_.ranges.begin());
  rest.from = std::max(pos, it->from);
  auto use = std::lower_bound(live_.uses.begin() + rest.uses_at, live_.uses.begin() + rest.uses_end,
                              pos, [](const UsePoint& u, uint32_t at) { return u.pos < at; });
  rest.uses_at = static_cast<uint32_t>(use - live_.uses.begin());
  rest.at = Location();
  auto id = static_cast<uint32_t>(list.pieces.size());
  list.add_behind(p, rest);
  Piece& head = list.pieces[p];
  head.uses_end = rest.uses_at;
  bool inside = it->from < pos;
  head.ranges_end = rest.ranges_at + (inside ? 1 : 0);
  head.to = inside ? pos : live_.ranges[head.ranges_end - 1].to;
  cursor.push_back(rest.ranges_at);
  return id;
}

// Returns whether the part has to be in a register for the instruction at a position.
bool ScanParts::needs_register(const Piece& p, uint32_t pos) const {
  uint32_t end = (pos | 1) + 1;
  auto first = live_.uses.begin() + p.uses_at, last = live_.uses.begin() + p.uses_end;
  auto use =
      std::lower_bound(first, last, pos, [](const UsePoint& u, uint32_t at) { return u.pos < at; });
  for (; use != last && use->pos < end; ++use) {
    if (use->policy == Policy::kReg) return true;
  }
  return false;
}

// Returns the best position, at `latest` or before, to end the part's location: outside of loops
// that do not use it.
uint32_t ScanParts::split_position(uint32_t p, uint32_t latest) const {
  const Piece& piece = list.pieces[p];
  auto first = live_.uses.begin() + piece.uses_at, last = live_.uses.begin() + piece.uses_end;
  auto use = std::lower_bound(first, last, latest,
                              [](const UsePoint& u, uint32_t at) { return u.pos < at; });
  uint32_t earliest = use == first ? piece.from + 1 : ((use - 1)->pos | 1) + 1;
  uint32_t best = latest;
  uint32_t l = m_.blocks[facts_.block_of(latest)].loop;
  for (; l != kNone; l = m_.loops[l].parent) {
    uint32_t at = 2 * m_.blocks[m_.loops[l].begin].begin;
    if (at < earliest || at > latest) break;
    best = at;
  }
  return best;
}

// Returns where a part in memory is loaded for a use: right before the use, or before the loops
// around it that the part enters. Always after the current position, since everything before is
// decided.
uint32_t ScanParts::reload_position(uint32_t p, uint32_t use_pos) const {
  uint32_t best = use_pos & ~1u;
  uint32_t l = m_.blocks[facts_.block_of(use_pos)].loop;
  for (; l != kNone; l = m_.loops[l].parent) {
    uint32_t at = 2 * m_.blocks[m_.loops[l].begin].begin;
    if (at <= std::max(list.pieces[p].from, now)) break;
    best = at;
  }
  return best;
}

// Returns the first use that is worth a register, or the end of the uses. A use that can read
// memory is worth one if another use follows that runs as often, or if the load can go before its
// loop.
uint32_t ScanParts::find_reload(uint32_t part) const {
  const Piece& p = list.pieces[part];
  for (uint32_t u = p.uses_at; u < p.uses_end; ++u) {
    const UsePoint& use = live_.uses[u];
    bool can_reload = (use.pos & ~1u) > std::max(p.from, now);
    if (!can_reload) continue;
    if (use.policy == Policy::kReg) return u;
    if (use.policy != Policy::kAny) continue;
    uint32_t at = reload_position(part, use.pos);
    if (at != (use.pos & ~1u) && facts_.frequency(at - 1) < 0.5f * facts_.frequency(use.pos))
      return u;
    if (u + 1 >= p.uses_end) continue;
    const UsePoint& following = live_.uses[u + 1];
    if (following.policy != Policy::kFixed && following.weight >= 0.5f * use.weight) return u;
  }
  return p.uses_end;
}

// Returns whether most jumps to a block bring the vreg of the part in a register. The part itself,
// and all parts after it, count as memory.
bool ScanParts::arrives_in_register(uint32_t part, uint32_t block) const {
  float all = 0, in_register = 0;
  for (uint32_t k = facts_.arrivals_at[block]; k < facts_.arrivals_at[block + 1]; ++k) {
    auto [from, frequency] = facts_.arrivals[k];
    all += frequency;
    uint32_t end = 2 * m_.blocks[from].end - 1;
    if (end >= list.pieces[part].from) continue;
    if (list.pieces[list.at(list.pieces[part].vreg, end)].at.is_reg()) in_register += frequency;
  }
  return in_register > 0.5f * all;
}

// Returns the start of a block before `latest` where the value mostly arrives in a register, or
// `latest`. An example is a block after a join, when only one path makes a call.
uint32_t ScanParts::rejoin_position(uint32_t part, uint32_t latest) const {
  const Piece& p = list.pieces[part];
  uint32_t earliest = std::max(p.from, now) + 1, last = std::min(p.to, latest);
  uint32_t b = facts_.block_of(p.from) + 1;
  uint32_t end = std::min<uint32_t>(b + kBlocksAhead, static_cast<uint32_t>(m_.blocks.size()));
  for (uint32_t k = p.ranges_at; b < end && 2 * m_.blocks[b].begin < last; ++b) {
    uint32_t at = 2 * m_.blocks[b].begin;
    while (k < p.ranges_end && live_.ranges[k].to <= at) ++k;
    if (k == p.ranges_end) break;
    bool live = at >= earliest && live_.ranges[k].from <= at;
    if (!live) continue;
    bool wanted = m_.blocks[b].loop != kNone || facts_.weight_between(p.vreg, at, p.to) > 0;
    if (wanted && arrives_in_register(part, b)) return at;
  }
  return latest;
}

// Puts the whole part in memory, up to the next use that is worth a register, or up to a block
// where the value mostly arrives in a register.
void ScanParts::spill_whole(uint32_t p) {
  uint32_t use = find_reload(p);
  uint32_t at = kNone;
  if (use != list.pieces[p].uses_end) {
    at = reload_position(p, live_.uses[use].pos);
    if (at <= list.pieces[p].from) at = kNone;
  }
  // Only a part made by a split can arrive in a register: the first part of a vreg has no part
  // before it.
  if (p >= m_.vregs.size()) at = rejoin_position(p, at);
  if (at < list.pieces[p].to) push(split(p, at));
  list.pieces[p].at = Location::slot(list.pieces[p].vreg);
  spilled[list.pieces[p].vreg] = true;
}

void ScanParts::spill_from(uint32_t p, uint32_t pos) {
  spill_whole(pos > list.pieces[p].from ? split(p, pos) : p);
}

}  // namespace uptier::jit::machine
