// ScanFacts: the facts that the linear scan has before it starts: clobbers, calls, hints, sums of
// weights, and hot blocks. They do not change afterwards.
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
    uint32_t next;   // the next hint of the same vreg, in `hints`; UINT32_MAX: none
    uint32_t other;  // a vreg, or a register if `fixed`
    float weight;
    bool fixed;
  };

  // Returns the k-th range of LiveRanges::ranges, cut to the part.
  Range range(const Piece& p, uint32_t k) const {
    const Range& r = live_.ranges[k];
    return {std::max(r.from, p.from), std::min(r.to, p.to)};
  }
  uint32_t block_of(uint32_t pos) const { return block_of_inst[pos / 2]; }
  float frequency(uint32_t pos) const { return m_.blocks[block_of(pos)].frequency; }
  // Returns the sum of the weights of the vreg's uses in [from, to).
  float weight_between(uint32_t v, uint32_t from, uint32_t to) const;
  // Returns the cost of storing a part before each call in its life and loading it afterwards: an
  // upper bound.
  float cost_of_calls(const Piece& p) const;
  // Returns whether the part is live in a block that runs much more often than the frame is made.
  bool lives_in_loops(const Piece& p) const;

  std::vector<uint32_t> block_of_inst;  // by instruction
  // The blocks that jump to block b, with the frequency of each jump, start at arrivals_at[b].
  std::vector<std::pair<uint32_t, float>> arrivals;
  std::vector<uint32_t> arrivals_at;
  std::vector<double> weight_sums;  // by use: the sum of the weights of all uses before it
  std::vector<std::pair<uint32_t, RegMask>> clobbers;  // position, registers lost there
  RegMask ever_clobbered = 0;
  std::vector<uint32_t> calls;     // positions
  std::vector<double> call_costs;  // by call: the sum of the costs of all calls before it
  std::vector<uint32_t> borders;   // positions where bare blocks end or begin
  float frames = 0;                // how often frames are made, as a sum of block frequencies
  std::vector<uint32_t> next_hot;  // by block: the first hot block at or after it
  std::vector<uint32_t> hint_at;   // by vreg: its first hint in `hints`
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
