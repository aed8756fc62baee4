// PieceList: the parts that the lives of vregs are split into.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "jit/machine/machine.h"

namespace uptier::jit::machine {

// A part of a vreg's life, with one location. The parts of a vreg are linked in order and share its
// ranges and uses: each part has those between its `from` and `to`.
struct Piece {
  uint32_t vreg = 0;
  uint32_t from = 0, to = 0;
  uint32_t ranges_at = 0, ranges_end = 0;  // in LiveRanges::ranges; never empty
  uint32_t uses_at = 0, uses_end = 0;      // in LiveRanges::uses
  uint32_t next = UINT32_MAX;              // the next part of the vreg
  Location at;  // a slot carries the vreg's number until slots are colored
};

struct PieceList {
  std::vector<Piece> pieces;  // piece v is the first part of vreg v; from == to: v is never live

  // Returns the part of `v` at a position: the last one that begins at or before it, or the first
  // part. Cost: logarithmic in the number of parts.
  uint32_t at(uint32_t v, uint32_t pos) const {
    if (pieces[v].next == UINT32_MAX) return v;
    const auto& parts = orders_[order_of_[v]];
    auto begins_after = [&](uint32_t at, uint32_t p) { return at < pieces[p].from; };
    return *(std::upper_bound(parts.begin() + 1, parts.end(), pos, begins_after) - 1);
  }

  // Puts a part after part `p` of the same vreg.
  void add_behind(uint32_t p, const Piece& part);

 private:
  std::vector<uint32_t> order_of_;             // by vreg with several parts: index in `orders_`
  std::vector<std::vector<uint32_t>> orders_;  // parts of a vreg, by position
};

}  // namespace uptier::jit::machine
