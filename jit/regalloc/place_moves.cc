// A value in SSA form is written to its slot only once: right after its definition. Entering a
// later part in memory then costs nothing. If all entries into memory together are rarer than the
// definition, each entry stores instead, except from a part that was itself loaded from the slot.
#include <algorithm>
#include <utility>
#include <vector>

#include "jit/regalloc/allocation.h"
#include "jit/regalloc/edge_changes.h"

namespace uptier::jit::machine {
namespace {

// Phases of a gap. A part that begins between an instruction's reads and writes is entered in
// kWithinLate: its value may be moved to where the instruction reads it in kWithin.
constexpr uint8_t kWithin = 0, kWithinLate = 1, kOnEdge = 2, kArguments = 3;

// The cost factor of a store in a bare block: it would need a frame.
constexpr float kBareStore = 4;

class MovePlacer {
 public:
  MovePlacer(MachineFunction& m, const LiveRanges& live, const PieceList& list)
      : m_(m), live_(live), list_(list), block_of_(m.insts.size()), last_from_(m.blocks.size()) {
    for (uint32_t b = 0; b < m.blocks.size(); ++b) {
      std::fill(block_of_.begin() + m.blocks[b].begin, block_of_.begin() + m.blocks[b].end, b);
    }
    stores_at_def_.resize(m.vregs.size());
  }

  std::vector<Move> run() {
    for (uint32_t v = 0; v < m_.vregs.size(); ++v) find_between(v);
    changes_ = find_edge_changes(m_, live_, list_);
    for (uint32_t b = 0; b < m_.blocks.size(); ++b) resolve_edges(b);
    find_stored();
    choose_stores();
    for (uint32_t v = 0; v < m_.vregs.size(); ++v) {
      if (list_.pieces[v].from == list_.pieces[v].to) continue;
      place_operands(v);
      place_definition(v);
    }
    for (const Transition& t : transitions_) transfer(t);
    for (uint32_t n = 0; n < m_.insts.size(); ++n) pass_fixed(n);
    auto earlier = [](const Move& a, const Move& b) {
      return a.gap != b.gap ? a.gap < b.gap : a.phase < b.phase;
    };
    std::stable_sort(moves_.begin(), moves_.end(), earlier);
    forward_copies();
    return std::move(moves_);
  }

 private:
  bool is_split(uint32_t v) const { return list_.pieces[v].next != UINT32_MAX; }

  bool is_block_start(uint32_t pos) const { return m_.blocks[block_of_[pos / 2]].begin * 2 == pos; }

  // One part of a vreg follows another.
  struct Transition {
    uint32_t from, to;  // parts
    uint32_t gap;
    uint8_t phase;
    float frequency;
  };

  struct Copy {
    Location from, to;
  };

  bool in_register(uint32_t part) const { return list_.pieces[part].at.is_reg(); }

  // Finds the parts in registers whose value may not be in its slot: the first part of a vreg, and
  // each part in a register that is entered from such a part.
  void find_stored() {
    stored_.assign(list_.pieces.size(), true);
    std::vector<uint32_t> first(list_.pieces.size(), UINT32_MAX), next(transitions_.size());
    for (uint32_t t = 0; t < transitions_.size(); ++t) {
      next[t] = first[transitions_[t].from];
      first[transitions_[t].from] = t;
    }
    std::vector<uint32_t> work;
    for (uint32_t v = 0; v < m_.vregs.size(); ++v) {
      if (is_split(v) && in_register(v)) work.push_back(v);
    }
    for (uint32_t p : work) stored_[p] = false;
    while (!work.empty()) {
      uint32_t p = work.back();
      work.pop_back();
      for (uint32_t t = first[p]; t != UINT32_MAX; t = next[t]) {
        uint32_t to = transitions_[t].to;
        if (!in_register(to) || !stored_[to]) continue;
        stored_[to] = false;
        work.push_back(to);
      }
    }
  }

  void choose_stores() {
    std::vector<float> entries(m_.vregs.size());
    for (const Transition& t : transitions_) {
      bool stores = !stored_[t.from] && !in_register(t.to);
      if (stores) entries[list_.pieces[t.from].vreg] += t.frequency;
    }
    for (uint32_t v = 0; v < m_.vregs.size(); ++v) {
      const Piece& first = list_.pieces[v];
      if (first.from == first.to) continue;
      const MBlock& block = m_.blocks[block_of_[first.from / 2]];
      float definition = block.bare ? kBareStore * block.frequency : block.frequency;
      stores_at_def_[v] = first.at.is_slot() || entries[v] >= definition;
    }
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

  // Adds the transitions between adjacent parts inside a block. Parts that meet at the start of a
  // block are handled on its edges.
  void find_between(uint32_t v) {
    for (uint32_t p = v; list_.pieces[p].next != UINT32_MAX; p = list_.pieces[p].next) {
      const Piece &a = list_.pieces[p], &b = list_.pieces[a.next];
      if (a.to != b.from || is_block_start(b.from)) continue;
      uint8_t phase = b.from % 2 == 0 ? kWithin : kWithinLate;
      transitions_.push_back(
          {p, a.next, b.from / 2, phase, m_.blocks[block_of_[b.from / 2]].frequency});
    }
  }

  void transfer(const Transition& t) {
    const Piece &a = list_.pieces[t.from], &b = list_.pieces[t.to];
    bool needless = b.at.is_slot() && (stores_at_def_[a.vreg] || stored_[t.from]);
    if (!needless) add(t.gap, t.phase, a.at, b.at);
  }

  void resolve_edges(uint32_t b) {
    const MBlock& block = m_.blocks[b];
    const MInst& t = m_.terminator(block);
    bool alone = t.edge_count == 1;
    auto edges = m_.edges_of(t);
    for (uint32_t k = 0; k < edges.size(); ++k) {
      const MBlock& to = m_.blocks[edges[k].to];
      // Equal edges of a switch share their target: once is enough.
      if (std::exchange(last_from_[edges[k].to], b + 1) == b + 1) continue;
      uint32_t gap = alone ? block.end - 1 : to.begin;
      float frequency = std::min(block.frequency, to.frequency);
      for (; next_change_ < changes_.size(); ++next_change_) {
        const EdgeChange& c = changes_[next_change_];
        if (c.block != b || c.edge != k) break;
        transitions_.push_back({c.before, c.after, gap, kOnEdge, frequency});
      }
      pass_params(block, edges[k], gap);
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

  // If an earlier phase of a gap has copied a value, later phases read it from its old place. A
  // value that lives past a call is often an argument that already is in its place.
  void forward_copies() {
    for (size_t first = 0, end; first < moves_.size(); first = end) {
      for (end = first; end < moves_.size() && moves_[end].gap == moves_[first].gap;) ++end;
      if (moves_[first].phase != moves_[end - 1].phase) forward_in_gap(first, end);
    }
    std::erase_if(moves_, [](const Move& m) { return m.from == m.to; });
  }

  void forward_in_gap(size_t first, size_t end) {
    copies_.clear();
    for (size_t i = first, next; i < end; i = next) {
      for (next = i; next < end && moves_[next].phase == moves_[i].phase;) ++next;
      for (size_t k = i; k < next; ++k) {
        for (const Copy& c : copies_) {
          if (c.to == moves_[k].from) moves_[k].from = c.from;
        }
      }
      if (next == end) return;
      auto written = [&](Location l) {
        return std::any_of(moves_.begin() + static_cast<ptrdiff_t>(i),
                           moves_.begin() + static_cast<ptrdiff_t>(next),
                           [&](const Move& m) { return m.to == l; });
      };
      std::erase_if(copies_, [&](const Copy& c) { return written(c.to) || written(c.from); });
      for (size_t k = i; k < next; ++k) {
        const Move& m = moves_[k];
        if (m.from.is_reg() && !written(m.from)) copies_.push_back({m.from, m.to});
      }
    }
  }

  MachineFunction& m_;
  const LiveRanges& live_;
  const PieceList& list_;
  std::vector<uint32_t> block_of_;
  std::vector<bool> stores_at_def_;
  std::vector<bool> stored_;  // by part: the value is in its slot too on every entry
  std::vector<Transition> transitions_;
  std::vector<EdgeChange> changes_;
  size_t next_change_ = 0;
  std::vector<Move> moves_;
  std::vector<Copy> copies_;         // of the current gap, while both places hold the value
  std::vector<uint32_t> last_from_;  // by target: 1 + the block last seen to go there
};

}  // namespace

std::vector<Move> place_moves(MachineFunction& m, const LiveRanges& live, const PieceList& pieces) {
  return MovePlacer(m, live, pieces).run();
}

}  // namespace uptier::jit::machine
