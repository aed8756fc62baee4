// LinearScan: registers for all parts of all vregs, in one walk over the positions.
//
//   - parts are taken in order of their start; `active` hold a register now, `inactive` hold one
//     but are in a hole of their ranges
//   - no two parts with one register overlap, nor does a part overlap a clobber of its register
//   - a vreg in SSA form cannot overlap an inactive one that began before it, so holes are looked
//     into only for parts that splitting made
//   - a part that has no register is in the vreg's slot up to the next use that wants one, or to a
//     block that most come to with the value in a register; what follows becomes a new part
//   - callee-saved registers are not for bare blocks (frame_plan.h): what lives on from there past a
//     call is split where they end
//   - who gives way is a matter of cost: the frequencies of the uses in the outermost loop around
//     the conflict, and of the next use behind it. A part is split as far out of loops as its uses
//     allow
//
// Source: Wimmer and Moessenboeck, "Optimized Interval Splitting in a Linear Scan Register
// Allocator", 2005; Wimmer and Franz, "Linear Scan Register Allocation on SSA Form", 2010.
#pragma once

#include <queue>
#include <vector>

#include "jit/regalloc/allocation.h"
#include "jit/regalloc/holes.h"

namespace uptier::jit::machine {

class LinearScan {
 public:
  LinearScan(const MachineFunction& m, const LiveRanges& live);
  PieceList run();

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr float kNever = 1e30f;
  static constexpr uint32_t kBlocksAhead = 64;  // that are looked at for a place to reload

  struct Hint {
    uint32_t next;
    uint32_t other;  // a vreg, or a register when `fixed`
    float weight;
    bool fixed;
  };
  struct Start {
    uint32_t pos;
    float weight;
    uint32_t piece;
    bool operator<(const Start& o) const {  // the queue's top is the earliest and heaviest
      return pos != o.pos ? pos > o.pos : weight < o.weight;
    }
  };

  // ---- linear_scan_setup.cc
  void collect_clobbers();
  void collect_hints();
  void add_inst_hints(const MInst& i, float weight);
  void hint(Vreg a, Vreg b, float weight);
  void hint_fixed(Vreg a, unsigned reg, float weight);
  void sum_weights();
  void collect_arrivals();
  void find_hot_blocks();
  // Sum of the weights of the vreg's uses in [from, to).
  float weight_between(uint32_t v, uint32_t from, uint32_t to) const;
  // What it costs at most to store a part before each call in its life, and to load it afterwards.
  float cost_of_calls(const Piece& p) const;
  // Whether the part is live where code runs oftener than the frame is made.
  bool lives_in_loops(const Piece& p) const;

  // ---- linear_scan.cc
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
  void push(uint32_t piece);
  Range range(const Piece& p, uint32_t k) const;
  uint32_t intersection(uint32_t a, uint32_t b) const;
  uint32_t block_of(uint32_t pos) const { return block_of_[pos / 2]; }
  float frequency(uint32_t pos) const { return m_.blocks[block_of(pos)].frequency; }

  // ---- linear_scan_split.cc
  uint32_t split(uint32_t p, uint32_t pos);
  void spill_from(uint32_t p, uint32_t pos);
  void spill_whole(uint32_t p);
  void evict(unsigned reg, uint32_t cur);
  void evict_active(uint32_t p, uint32_t pos);
  uint32_t split_position(uint32_t p, uint32_t latest) const;
  uint32_t reload_position(uint32_t p, uint32_t use_pos) const;
  uint32_t find_reload(uint32_t part) const;
  uint32_t rejoin_position(uint32_t part, uint32_t latest) const;
  bool arrives_in_register(uint32_t part, uint32_t block) const;
  bool needs_register(const Piece& p, uint32_t pos) const;
  float spill_cost(uint32_t p, uint32_t cur) const;
  float victim_cost(unsigned reg, uint32_t cur);

  const MachineFunction& m_;
  const LiveRanges& live_;
  PieceList list_;
  std::vector<Piece>& pieces_;
  std::vector<uint32_t> cursor_;    // by piece: the range at or behind the current position
  std::vector<uint32_t> block_of_;  // by instruction
  // Who jumps to block b, with the frequency of it: from arrivals_at_[b] on.
  std::vector<std::pair<uint32_t, float>> arrivals_;
  std::vector<uint32_t> arrivals_at_;
  std::vector<bool> spilled_;                           // by vreg: has a slot
  std::vector<double> weight_sums_;                     // by use: weights of all uses before it
  std::vector<std::pair<uint32_t, RegMask>> clobbers_;  // position, what is lost there
  RegMask ever_clobbered_ = 0;
  std::vector<uint32_t> calls_;     // positions
  std::vector<double> call_costs_;  // by call: of all before it
  std::vector<uint32_t> borders_;   // positions where bare blocks end or begin
  float frames_ = 0;                // how often the frame is made
  std::vector<uint32_t> next_hot_;  // by block: the first from there on that runs oftener
  RegMask used_ = 0;
  std::vector<uint32_t> hint_at_;  // by vreg: first of `hints_`
  std::vector<Hint> hints_;
  std::priority_queue<Start> queue_;
  uint32_t active_[kRegCount];
  Holes inactive_;
  uint32_t now_ = 0;         // the start of the part at hand
  uint32_t next_event_ = 0;  // advance() has nothing to do before
  uint32_t free_until_[kRegCount];
  uint32_t clobbered_at_[kRegCount];
};

}  // namespace uptier::jit::machine
