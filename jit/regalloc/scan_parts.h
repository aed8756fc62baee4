// ScanParts: the parts of the linear scan, the queue of parts that wait for a location, and the
// choice of where to split them.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "jit/regalloc/piece_list.h"
#include "jit/regalloc/scan_facts.h"

namespace uptier::jit::machine {

class ScanParts {
 public:
  // Makes one part of each vreg. All arguments must outlive this.
  ScanParts(const MachineFunction& m, const LiveRanges& live, const ScanFacts& facts);

  struct Start {
    uint32_t pos;
    float weight;
    uint32_t piece;
    bool operator<(const Start& o) const {  // the queue's top is the earliest and heaviest
      return pos != o.pos ? pos > o.pos : weight < o.weight;
    }
  };

  // Puts a part into the queue.
  void push(uint32_t piece);
  // Splits a part at a position inside it. Returns the rest, which has no location yet.
  uint32_t split(uint32_t p, uint32_t pos);
  void spill_from(uint32_t p, uint32_t pos);
  // Puts the whole part in memory, up to the next use that is worth a register, or up to a block
  // where the value mostly arrives in a register.
  void spill_whole(uint32_t p);
  // Returns the best position, at `latest` or before, to end the part's location: outside of loops
  // that do not use it.
  uint32_t split_position(uint32_t p, uint32_t latest) const;
  // Returns whether the part has to be in a register for the instruction at a position.
  bool needs_register(const Piece& p, uint32_t pos) const;

  PieceList list;
  std::vector<uint32_t> cursor;  // by piece: the range at or after the current position
  std::vector<bool> spilled;     // by vreg: has a slot
  std::priority_queue<Start> queue;
  uint32_t now = 0;  // the start of the part being processed

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // The search for a place to reload looks at this many blocks.
  static constexpr uint32_t kBlocksAhead = 64;

  uint32_t reload_position(uint32_t p, uint32_t use_pos) const;
  uint32_t find_reload(uint32_t part) const;
  uint32_t rejoin_position(uint32_t part, uint32_t latest) const;
  bool arrives_in_register(uint32_t part, uint32_t block) const;

  const MachineFunction& m_;
  const LiveRanges& live_;
  const ScanFacts& facts_;
};

}  // namespace uptier::jit::machine
