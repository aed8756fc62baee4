// ScanFacts: what the linear scan knows before it starts: clobbers, calls, hints, sums of weights, and
// which blocks run often. Nothing here changes afterwards.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "jit/regalloc/live_ranges.h"
#include "jit/regalloc/piece_list.h"

namespace uptier::jit::machine {

class ScanFacts {
 public:
  // Both must outlive the facts.
  ScanFacts(const MachineFunction& m, const LiveRanges& live);

  struct Hint {
    uint32_t next;   // of the same vreg, in `hints`; none: UINT32_MAX
    uint32_t other;  // a vreg, or a register when `fixed`
    float weight;
    bool fixed;
  };

  // Returns the k-th range of LiveRanges::ranges, as far as it belongs to the part.
  Range range(const Piece& p, uint32_t k) const {
    const Range& r = live_.ranges[k];
    return {std::max(r.from, p.from), std::min(r.to, p.to)};
  }
  uint32_t block_of(uint32_t pos) const { return block_of_inst[pos / 2]; }
  float frequency(uint32_t pos) const { return m_.blocks[block_of(pos)].frequency; }
  // Returns the sum of the weights of the vreg's uses in [from, to).
  float weight_between(uint32_t v, uint32_t from, uint32_t to) const;
  // Returns what it costs at most to store a part before each call in its life, and to load it
  // afterwards.
  float cost_of_calls(const Piece& p) const;
  // Returns whether the part is live where code runs more often than the frame is made.
  bool lives_in_loops(const Piece& p) const;

  std::vector<uint32_t> block_of_inst;  // by instruction
  // Which blocks jump to block b, with the frequency of the jump: from arrivals_at[b] on.
  std::vector<std::pair<uint32_t, float>> arrivals;
  std::vector<uint32_t> arrivals_at;
  std::vector<double> weight_sums;                     // by use: weights of all uses before it
  std::vector<std::pair<uint32_t, RegMask>> clobbers;  // position, what is lost there
  RegMask ever_clobbered = 0;
  std::vector<uint32_t> calls;     // positions
  std::vector<double> call_costs;  // by call: of all calls before it
  std::vector<uint32_t> borders;   // positions where bare blocks end or begin
  float frames = 0;                // how often the frame is made
  std::vector<uint32_t> next_hot;  // by block: the first from there on that runs more often
  std::vector<uint32_t> hint_at;   // by vreg: the first of `hints`
  std::vector<Hint> hints;

 private:
  void collect_clobbers();
  void collect_hints();
  void add_inst_hints(const MInst& i, float weight);
  void hint(Vreg a, Vreg b, float weight);
  void hint_fixed(Vreg a, unsigned reg, float weight);
  void sum_weights();
  void collect_arrivals();
  void find_hot_blocks();

  const MachineFunction& m_;
  const LiveRanges& live_;
};

}  // namespace uptier::jit::machine
