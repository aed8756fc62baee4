// Linear scan over lifetimes that are one interval each, from the first to the last place in layout
// order where the value is needed. Loops need no special care: a value that is live around a loop
// is live into all of its blocks.
#include "jit/analysis/frame_layout.h"

#include <algorithm>
#include <queue>

#include "jit/analysis/deopt_targets.h"

namespace uptier::jit {
namespace {

struct SlotLifetime {
  uint32_t value = 0;
  uint32_t start = 0;
  uint32_t end = 0;
};

class Lifetimes {
 public:
  Lifetimes(const Function& f, const Liveness& live)
      : f_(f), live_(live), number_(f.values.size()) {}

  // Returns the intervals of values that need a slot, by rising start.
  std::vector<SlotLifetime> run() {
    choose();
    extend_over_blocks();
    std::sort(found_.begin(), found_.end(), [](const SlotLifetime& a, const SlotLifetime& b) {
      return a.start != b.start ? a.start < b.start : a.value < b.value;
    });
    return std::move(found_);
  }

 private:
  bool is_constant(Value v) const {
    InstId i = f_.value(v).inst;
    return i.valid() && f_.inst(i).op == Opcode::kConst;
  }

  void choose() {
    found_.reserve(live_.crossing.size());
    for (Block b : f_.layout) {
      for (Value p : f_.params(b)) want(p);
    }
    for (Value v : live_.crossing) want(v);
    for (Value v : live_.across_calls) want(v);
    for (const StatePoint& p : state_points(f_, live_)) {
      for (Value v : p.live) want(v);
    }
  }

  // A definition and the last uses of its operands are at one position and may share a slot: every
  // instruction reads before it writes, and so do the moves along an edge.
  void want(Value v) {
    uint32_t& number = number_[v.index()];
    if (number != 0 || is_constant(v)) return;
    const Lifetime& l = live_.lifetimes[v.index()];
    found_.push_back({v.index(), l.start, l.end});
    number = static_cast<uint32_t>(found_.size());
  }

  // A value that is live into a block is needed from its start back to the ends of its
  // predecessors.
  void extend_over_blocks() {
    std::vector<BlockPositions> reach = live_.positions;
    for (BlockPositions& r : reach) r.last = r.first;
    for (Block b : f_.layout) {
      uint32_t last = live_.positions[b.index()].last;
      for (const Edge& e : f_.successors(b)) {
        BlockPositions& r = reach[e.to.index()];
        r = {std::min(r.first, last), std::max(r.last, last)};
      }
    }
    for (Block b : f_.layout) {
      auto [low, high] = reach[b.index()];
      for (Value v : live_.live_in[b.index()]) {
        if (uint32_t number = number_[v.index()]; number != 0) {
          SlotLifetime& i = found_[number - 1];
          i.start = std::min(i.start, low);
          i.end = std::max(i.end, high);
        }
      }
    }
  }

  const Function& f_;
  const Liveness& live_;
  std::vector<uint32_t> number_;  // by value: 1 + its place in found_; 0: it needs no slot
  std::vector<SlotLifetime> found_;
};

}  // namespace

FrameLayout layout_frame(const Function& f, const Liveness& live) {
  FrameLayout frame;
  frame.slot.resize(f.values.size());
  // The end of a lifetime, with the slot in the low bits: of equal ends, the lowest slot is freed
  // first.
  auto busy_until = [](uint32_t end, int32_t slot) {
    return uint64_t{end} << 32 | static_cast<uint32_t>(slot);
  };
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> busy;
  std::vector<int32_t> free;
  int32_t next = kSlabSlot;
  for (const SlotLifetime& i : Lifetimes(f, live).run()) {
    while (!busy.empty() && busy.top() >> 32 <= i.start) {
      free.push_back(static_cast<int32_t>(busy.top()));
      busy.pop();
    }
    int32_t slot;
    if (free.empty()) {
      slot = next -= 8;
    } else {
      slot = free.back();
      free.pop_back();
    }
    frame.slot[i.value] = slot;
    busy.push(busy_until(i.end, slot));
  }
  if (const Inst* memory = find_frame_memory(f)) {
    frame.memory = next -= static_cast<int32_t>(memory->imm);
  }
  frame.size = (static_cast<uint32_t>(-next) + 15) & ~15u;
  return frame;
}

}  // namespace uptier::jit
