// One sweep over the positions. Two vregs share a slot if their lives, from the first position to
// the last, do not overlap.
#include <algorithm>
#include <queue>

#include "jit/regalloc/allocation.h"
#include "jit/regalloc/frame_plan.h"

namespace uptier::jit::machine {
namespace {

struct Life {
  uint32_t from, to, vreg;
};

std::vector<Life> lives_in_memory(const PieceList& list, uint32_t vregs) {
  std::vector<Life> lives;
  for (uint32_t v = 0; v < vregs; ++v) {
    bool in_memory = false;
    uint32_t last = v;
    for (uint32_t p = v; p != UINT32_MAX; p = list.pieces[p].next) {
      in_memory |= list.pieces[p].at.is_slot();
      last = p;
    }
    if (in_memory) lives.push_back({list.pieces[v].from, list.pieces[last].to, v});
  }
  std::sort(lives.begin(), lives.end(),
            [](const Life& a, const Life& b) { return a.from < b.from; });
  return lives;
}

}  // namespace

uint32_t color_slots(MachineFunction& m, const PieceList& pieces, std::vector<Move>& moves) {
  auto vregs = static_cast<uint32_t>(m.vregs.size());
  std::vector<uint32_t> color(vregs);
  using Taken = std::pair<uint32_t, uint32_t>;  // until, slot
  std::priority_queue<Taken, std::vector<Taken>, std::greater<>> taken;
  uint32_t slots = 0;
  for (const Life& l : lives_in_memory(pieces, vregs)) {
    // A store right after the definition may lie one gap after the last position.
    if (!taken.empty() && taken.top().first + 2 <= l.from) {
      color[l.vreg] = taken.top().second;
      taken.pop();
    } else {
      color[l.vreg] = slots++;
    }
    taken.push({l.to, color[l.vreg]});
  }
  auto recolor = [&](Location& l) {
    if (l.is_slot()) l = Location::slot(color[l.index()]);
  };
  for (Operand& o : m.operands) recolor(o.at);
  for (Move& move : moves) {
    recolor(move.from);
    recolor(move.to);
  }
  return slots;
}

namespace {

Allocation allocate(MachineFunction& m, const LiveRanges& live) {
  PieceList pieces = scan(m, live);
  Allocation a;
  a.moves = place_moves(m, live, pieces);
  a.slots = color_slots(m, pieces, a.moves);
  for (const Piece& p : pieces.pieces) {
    if (p.at.is_reg()) a.used |= mask_of(p.at.index());
  }
  return a;
}

}  // namespace

Allocation allocate_registers(MachineFunction& m) {
  ask_for_bare_blocks(m);
  LiveRanges live = find_live_ranges(m);
  Allocation a = allocate(m, live);
  // The request for bare blocks has cost registers. If the body cannot begin bare after all,
  // allocate without the request.
  if (!m.blocks[0].bare || plan_frame(m, a).bare[0]) return a;
  for (MBlock& b : m.blocks) b.bare = false;
  return allocate(m, live);
}

}  // namespace uptier::jit::machine
