// LinearScan: gives each part of each vreg a register or a slot, in one walk over the positions.
//
//   - parts are taken in order of their start; `active` parts hold a register now, `inactive` parts
//     hold one but are in a hole of their ranges
//   - no two parts with the same register overlap, and no part overlaps a clobber of its register
//   - a vreg in SSA form cannot overlap an inactive one that began before it, so holes are examined
//     only for parts that splitting made
//   - a part without a register is in the vreg's slot up to the next use that wants a register, or
//     up to a block that most paths reach with the value in a register; from there on it is a new
//     part
//   - bare blocks do not use callee-saved registers (frame_plan.h): a part that reaches from there
//     past a call is split where the bare blocks end
//   - costs decide which part is evicted: the frequencies of the uses in the outermost loop around
//     the conflict, and of the next use after it. A part is split as far outside of loops as its
//     uses allow
//
// Source: Wimmer and Moessenboeck, "Optimized Interval Splitting in a Linear Scan Register
// Allocator", 2005; Wimmer and Franz, "Linear Scan Register Allocation on SSA Form", 2010.
#pragma once

#include <vector>

#include "jit/regalloc/allocation.h"
#include "jit/regalloc/holes.h"
#include "jit/regalloc/scan_facts.h"
#include "jit/regalloc/scan_parts.h"

namespace uptier::jit::machine {

class LinearScan {
 public:
  LinearScan(const MachineFunction& m, const LiveRanges& live);
  PieceList run();

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr float kNever = 1e30f;

  void process(uint32_t cur);
  bool split_at_border(uint32_t cur);
  void advance(uint32_t pos);
  uint32_t live_from(uint32_t p, uint32_t pos);
  void find_free(uint32_t cur);
  void find_clobbers(uint32_t cur);
  bool take_free(uint32_t cur);
  bool avoid_saving(uint32_t cur, RegMask clobbered);
  unsigned best_register(uint32_t cur, RegMask candidates);
  void add_own_hints(uint32_t cur, float* score) const;
  bool take_blocked(uint32_t cur, RegMask regs, float most);
  void assign(uint32_t cur, unsigned reg);
  void take_until(uint32_t cur, unsigned reg, uint32_t blocked);
  uint32_t intersection(uint32_t a, uint32_t b) const;
  void evict(unsigned reg, uint32_t cur);
  void evict_active(uint32_t p, uint32_t pos);
  float spill_cost(uint32_t p, uint32_t cur) const;
  float victim_cost(unsigned reg, uint32_t cur);

  const MachineFunction& m_;
  const LiveRanges& live_;
  ScanFacts facts_;
  ScanParts parts_;
  std::vector<Piece>& pieces_;     // of parts_
  std::vector<uint32_t>& cursor_;  // of parts_
  RegMask used_ = 0;
  uint32_t active_[kRegCount];
  Holes inactive_;
  uint32_t next_event_ = 0;  // advance() has nothing to do before this position
  uint32_t free_until_[kRegCount];
  uint32_t clobbered_at_[kRegCount];
};

}  // namespace uptier::jit::machine
