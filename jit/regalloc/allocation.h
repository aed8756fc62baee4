// Allocation: what the register allocator decides, and the steps that it takes.
//
//   find_live_ranges -> scan -> place moves -> color slots -> check (tests and debug builds)
//
// Operands carry their locations afterwards; what has to happen between instructions is in `moves`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "jit/machine/machine.h"
#include "jit/regalloc/live_ranges.h"

namespace uptier::jit::machine {

// A copy in the gap before instruction `gap`. Moves of one gap and phase happen at once.
struct Move {
  uint32_t gap;
  uint8_t phase;  // order within the gap, see place_moves.cc
  Location from, to;
  friend bool operator==(const Move&, const Move&) = default;
};

struct Allocation {
  std::vector<Move> moves;  // sorted by gap and phase
  uint32_t slots = 0;       // 8-byte spill slots
  RegMask used = 0;         // registers that hold something somewhere
};

// A part of a vreg's life with one location. Parts of a vreg are linked in order, and share its
// ranges and uses: a part has those between `from` and `to`.
struct Piece {
  uint32_t vreg = 0;
  uint32_t from = 0, to = 0;
  uint32_t ranges_at = 0, ranges_end = 0;  // in LiveRanges::ranges; never empty
  uint32_t uses_at = 0, uses_end = 0;      // in LiveRanges::uses
  uint32_t next = UINT32_MAX;              // the next part of the vreg
  Location at;  // a slot carries the vreg's number until slots are colored
};

struct PieceList {
  std::vector<Piece> pieces;  // piece v is the first part of vreg v; from == to: never live

  // Returns the part of `v` that is live at or around a position: the last that begins at or
  // before, or the first. Cost: logarithmic in the number of parts.
  uint32_t at(uint32_t v, uint32_t pos) const {
    if (pieces[v].next == UINT32_MAX) return v;
    const auto& parts = orders_[order_of_[v]];
    auto begins_after = [&](uint32_t at, uint32_t p) { return at < pieces[p].from; };
    return *(std::upper_bound(parts.begin() + 1, parts.end(), pos, begins_after) - 1);
  }

  // Puts a part behind part `p` of the same vreg.
  void add_behind(uint32_t p, const Piece& part);

 private:
  std::vector<uint32_t> order_of_;             // by vreg, when it has several parts: in `orders_`
  std::vector<std::vector<uint32_t>> orders_;  // parts of a vreg, by position
};

// Gives every part of every vreg a register or a slot. See linear_scan.cc.
PieceList scan(const MachineFunction& m, const LiveRanges& live);

// Writes operand locations, and makes the moves between parts, at definitions and on edges.
std::vector<Move> place_moves(MachineFunction& m, const LiveRanges& live, const PieceList& pieces);

// Replaces slots by vreg with shared ones; returns how many there are.
uint32_t color_slots(MachineFunction& m, const PieceList& pieces, std::vector<Move>& moves);

// All of it.
Allocation allocate_registers(MachineFunction& m);

// Follows every path with the set of vregs that each place holds, without the allocator's data.
// Returns the first operand that reads a place which does not hold its value, or an empty string.
std::string check_allocation(const MachineFunction& m, const Allocation& a);

}  // namespace uptier::jit::machine
