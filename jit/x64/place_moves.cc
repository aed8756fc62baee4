// A value in SSA form needs its slot written once: right after its definition, so that later parts
// in memory cost nothing to enter. Where all of those are rarer than the definition, each entry
// into memory stores instead.
#include <algorithm>

#include "jit/x64/allocation.h"

namespace uptier::jit::x64 {
namespace {

// Phases of a gap: a part that begins between reads and writes is stored after moves to where it
// was.
constexpr uint8_t kWithin = 0, kWithinLate = 1, kOnEdge = 2, kArguments = 3;

class MovePlacer {
 public:
  MovePlacer(MachineFunction& m, const LiveRanges& live, PieceList& list)
      : m_(m), live_(live), list_(list), block_of_(m.insts.size()) {
    for (uint32_t b = 0; b < m.blocks.size(); ++b) {
      std::fill(block_of_.begin() + m.blocks[b].begin, block_of_.begin() + m.blocks[b].end, b);
    }
    stores_at_def_.resize(m.vregs.size());
    index_parts();
  }

  std::vector<Move> run() {
    for (uint32_t v = 0; v < m_.vregs.size(); ++v) {
      if (list_.pieces[v].from == list_.pieces[v].to) continue;
      stores_at_def_[v] = store_pays_at_def(v);
      place_operands(v);
      place_definition(v);
      place_between(v);
    }
    for (uint32_t b = 0; b < m_.blocks.size(); ++b) resolve_edges(b);
    for (uint32_t n = 0; n < m_.insts.size(); ++n) pass_fixed(n);
    auto earlier = [](const Move& a, const Move& b) {
      return a.gap != b.gap ? a.gap < b.gap : a.phase < b.phase;
    };
    std::stable_sort(moves_.begin(), moves_.end(), earlier);
    return std::move(moves_);
  }

 private:
  // Lists the parts of split vregs side by side, for binary search.
  void index_parts() {
    parts_at_.resize(m_.vregs.size() + 1);
    for (uint32_t v = 0; v < m_.vregs.size(); ++v) {
      parts_at_[v] = static_cast<uint32_t>(parts_.size());
      if (list_.pieces[v].next == UINT32_MAX) continue;
      for (uint32_t p = v; p != UINT32_MAX; p = list_.pieces[p].next) parts_.push_back(p);
    }
    parts_at_.back() = static_cast<uint32_t>(parts_.size());
  }

  bool is_split(uint32_t v) const { return parts_at_[v] != parts_at_[v + 1]; }

  // Returns where the vreg is at a position at which it is live.
  Location location(uint32_t v, uint32_t pos) const {
    if (!is_split(v)) return list_.pieces[v].at;
    auto first = parts_.begin() + parts_at_[v], last = parts_.begin() + parts_at_[v + 1];
    auto begins_after = [&](uint32_t at, uint32_t p) { return at < list_.pieces[p].from; };
    return list_.pieces[*(std::upper_bound(first + 1, last, pos, begins_after) - 1)].at;
  }

  bool is_block_start(uint32_t pos) const { return m_.blocks[block_of_[pos / 2]].begin * 2 == pos; }

  float frequency(uint32_t pos) const {
    uint32_t b = block_of_[pos / 2];
    float f = m_.blocks[b].frequency;
    return is_block_start(pos) && b > 0 ? std::min(f, m_.blocks[b - 1].frequency) : f;
  }

  bool store_pays_at_def(uint32_t v) const {
    float entries = 0;
    const Piece* p = &list_.pieces[v];
    if (p->at.is_slot()) return true;
    float definition = m_.blocks[block_of_[p->from / 2]].frequency;
    for (; p->next != UINT32_MAX; p = &list_.pieces[p->next]) {
      const Piece& next = list_.pieces[p->next];
      if (p->at.is_reg() && next.at.is_slot()) entries += frequency(next.from);
    }
    return entries >= definition;
  }

  void add(uint32_t gap, uint8_t phase, Location from, Location to) {
    if (from != to) moves_.push_back({gap, phase, from, to});
  }

  void place_operands(uint32_t v) {
    for (uint32_t p = v; p != UINT32_MAX; p = list_.pieces[p].next) {
      const Piece& piece = list_.pieces[p];
      for (uint32_t u = piece.uses_at; u < piece.uses_end; ++u) {
        uint32_t o = live_.uses[u].operand;
        if (o != UINT32_MAX) m_.operands[o].at = piece.at;
      }
    }
  }

  void place_definition(uint32_t v) {
    const Piece& first = list_.pieces[v];
    const UsePoint& def = live_.uses[live_.uses_at[v]];
    bool parameter = def.operand == UINT32_MAX;
    bool fixed = !parameter && def.policy == Policy::kFixed;
    uint32_t gap = parameter ? def.pos / 2 + 1 : (def.pos + 1) / 2;
    Location from = fixed ? m_.operands[def.operand].fixed : first.at;
    if (fixed) add(gap, kWithin, from, first.at);
    if (first.at.is_reg() && stores_at_def_[v] && has_slot(v)) {
      add(gap, kWithin, from, Location::slot(v));
    }
  }

  bool has_slot(uint32_t v) const {
    for (uint32_t p = v; p != UINT32_MAX; p = list_.pieces[p].next) {
      if (list_.pieces[p].at.is_slot()) return true;
    }
    return false;
  }

  // Between adjacent parts inside a block; those that meet at a block's start meet on its edges.
  void place_between(uint32_t v) {
    for (uint32_t p = v; list_.pieces[p].next != UINT32_MAX; p = list_.pieces[p].next) {
      const Piece &a = list_.pieces[p], &b = list_.pieces[a.next];
      if (a.to != b.from || is_block_start(b.from)) continue;
      transfer(v, b.from / 2, b.from % 2 == 0 ? kWithin : kWithinLate, a.at, b.at);
    }
  }

  void transfer(uint32_t v, uint32_t gap, uint8_t phase, Location from, Location to) {
    if (to.is_slot() && stores_at_def_[v]) return;
    add(gap, phase, from, to);
  }

  void resolve_edges(uint32_t b) {
    const MBlock& block = m_.blocks[b];
    const MInst& t = m_.terminator(block);
    bool alone = t.edge_count == 1;
    last_to_.clear();
    for (const MEdge& e : m_.edges_of(t)) {
      const MBlock& to = m_.blocks[e.to];
      // Equal edges of a switch share their target: once is enough.
      if (std::find(last_to_.begin(), last_to_.end(), e.to) != last_to_.end()) continue;
      if (t.edge_count > 1) last_to_.push_back(e.to);
      uint32_t gap = alone ? block.end - 1 : to.begin;
      for (uint32_t v : live_.live_in[e.to]) {
        if (!is_split(v)) continue;
        transfer(v, gap, kOnEdge, location(v, 2 * block.end - 1), location(v, 2 * to.begin));
      }
      pass_params(block, e, gap);
    }
  }

  void pass_params(const MBlock& from, const MEdge& e, uint32_t gap) {
    auto params = m_.params_of(m_.blocks[e.to]);
    for (uint32_t k = 0; k < params.size(); ++k) {
      const MArg& a = m_.edge_args[e.args_at + k];
      Location source = a.vreg.valid()
                            ? list_.pieces[list_.at(a.vreg.index(), 2 * (from.end - 1))].at
                            : Location::constant(a.constant);
      add(gap, kOnEdge, source, list_.pieces[params[k].index()].at);
    }
  }

  void pass_fixed(uint32_t n) {
    for (Operand& o : m_.operands_of(m_.insts[n])) {
      if (o.policy != Policy::kFixed || o.role == Role::kDef) continue;
      Location from = o.vreg.valid() ? o.at : Location::constant(o.constant);
      add(n, kArguments, from, o.fixed);
    }
  }

  MachineFunction& m_;
  const LiveRanges& live_;
  PieceList& list_;
  std::vector<uint32_t> block_of_;
  std::vector<bool> stores_at_def_;
  std::vector<uint32_t> parts_at_;  // by vreg: its first entry in `parts_`; no entries: not split
  std::vector<uint32_t> parts_;
  std::vector<Move> moves_;
  std::vector<uint32_t> last_to_;
};

}  // namespace

std::vector<Move> place_moves(MachineFunction& m, const LiveRanges& live, PieceList& pieces) {
  return MovePlacer(m, live, pieces).run();
}

}  // namespace uptier::jit::x64
