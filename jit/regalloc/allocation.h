// Allocation: the result of the register allocator, and the steps that lead to it.
//
//   find_live_ranges -> scan -> place moves -> color slots -> check (tests and debug builds)
//
// Afterwards each operand carries its location, and `moves` lists the copies between instructions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jit/machine/machine.h"
#include "jit/regalloc/live_ranges.h"
#include "jit/regalloc/piece_list.h"

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

// Gives every part of every vreg a register or a slot. See linear_scan.h.
PieceList scan(const MachineFunction& m, const LiveRanges& live);

// Writes the locations of operands, and returns the moves between parts, at definitions and on
// edges.
std::vector<Move> place_moves(MachineFunction& m, const LiveRanges& live, const PieceList& pieces);

// Replaces the slot of each vreg by one that several vregs may share; returns the number of slots.
uint32_t color_slots(MachineFunction& m, const PieceList& pieces, std::vector<Move>& moves);

// Runs all steps.
Allocation allocate_registers(MachineFunction& m);

// Follows every path with the set of vregs that each place holds, without the allocator's data.
// Returns the first operand that reads a place which does not hold its value, or an empty string.
std::string check_allocation(const MachineFunction& m, const Allocation& a);

}  // namespace uptier::jit::machine
