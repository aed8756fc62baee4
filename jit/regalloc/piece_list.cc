#include "jit/regalloc/piece_list.h"

namespace uptier::jit::machine {

void PieceList::add_behind(uint32_t p, const Piece& part) {
  auto id = static_cast<uint32_t>(pieces.size());
  if (order_of_.size() <= part.vreg) order_of_.resize(part.vreg + 1);
  if (pieces[part.vreg].next == UINT32_MAX) {
    order_of_[part.vreg] = static_cast<uint32_t>(orders_.size());
    orders_.push_back({part.vreg});
  }
  auto& parts = orders_[order_of_[part.vreg]];
  auto begins_after = [&](uint32_t at, uint32_t q) { return at < pieces[q].from; };
  parts.insert(std::upper_bound(parts.begin(), parts.end(), part.from, begins_after), id);
  pieces.push_back(part);
  pieces.back().next = pieces[p].next;
  pieces[p].next = id;
}

}  // namespace uptier::jit::machine
