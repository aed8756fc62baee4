// Linear scan over lifetimes that are one interval each, from the first to the last place in layout
// order where the value is needed. Loops need no thought: a value that is live around a loop is
// live into all of its blocks.
#include "jit/ir/frame_layout.h"

#include <algorithm>
#include <queue>

#include "jit/ir/deopt_points.h"

namespace uptier::jit {
namespace {

struct Interval {
  uint32_t value = 0;
  uint32_t start = UINT32_MAX;
  uint32_t end = 0;
};

class Lifetimes {
 public:
  Lifetimes(const Function& f, const Liveness& live)
      : f_(f),
        live_(live),
        of_(f.values.size()),
        wanted_(f.values.size()),
        defined_(f.values.size()) {}

  // Returns the intervals of values that want a slot, by rising start.
  std::vector<Interval> run() {
    choose();
    number_positions();
    extend_over_blocks();
    std::vector<Interval> found;
    found.reserve(live_.crossing.size());
    for (uint32_t v = 0; v < of_.size(); ++v) {
      if (!wanted_[v]) continue;
      of_[v].value = v;
      found.push_back(of_[v]);
    }
    std::sort(found.begin(), found.end(), [](const Interval& a, const Interval& b) {
      return a.start != b.start ? a.start < b.start : a.value < b.value;
    });
    return found;
  }

 private:
  bool is_constant(Value v) const {
    InstId i = f_.value(v).inst;
    return i.valid() && f_.inst(i).op == Opcode::kConst;
  }

  void choose() {
    for (Block b : f_.layout) {
      for (Value p : f_.params(b)) wanted_[p.index()] = true;
    }
    for (Value v : live_.crossing) wanted_[v.index()] = !is_constant(v);
    for (const StatePoint& p : state_points(f_, live_)) {
      for (Value v : p.live) wanted_[v.index()] = true;
    }
  }

  // Positions rise from call to call.
  void extend(Value v, uint32_t position) {
    if (!wanted_[v.index()]) return;
    Interval& i = of_[v.index()];
    i.start = std::min(i.start, position);
    i.end = position;
  }
  void extend(Value v, uint32_t low, uint32_t high) {
    if (!wanted_[v.index()]) return;
    Interval& i = of_[v.index()];
    i.start = std::min(i.start, low);
    i.end = std::max(i.end, high);
  }

  void define(Value v, uint32_t position) {
    defined_[v.index()] = position;
    extend(v, position);
  }

  // What a block both defines and uses behind a call wants a slot; what comes from another block
  // has one.
  void use(Value v, uint32_t position) {
    uint32_t defined = defined_[v.index()];
    bool across = defined != 0 && defined < last_call_ && !wanted_[v.index()] && !is_constant(v);
    if (across) {
      wanted_[v.index()] = true;
      extend(v, defined);
    }
    extend(v, position);
  }

  // A definition and the last uses of its operands are at one position and may share a slot: every
  // instruction reads before it writes, and so do the moves along an edge.
  void number_positions() {
    first_.resize(f_.blocks.size());
    last_.resize(f_.blocks.size());
    uint32_t position = 0;
    for (Block b : f_.layout) {
      first_[b.index()] = ++position;
      last_call_ = 0;
      for (Value p : f_.params(b)) {
        extend(p, position,
               position + 1);  // an unused parameter is written too, so it may not share
      }
      for (InstId id : f_.block(b).insts) {
        const Inst& i = f_.inst(id);
        ++position;
        for (Value v : f_.args(i)) use(v, position);
        if (i.result.valid()) define(i.result, position);
        if (returns_to_point(i.op)) last_call_ = position;
      }
      for (const Edge& e : f_.successors(b)) {
        for (Value v : f_.list(e.args)) use(v, position);
      }
      last_[b.index()] = position;
    }
  }

  // What is live into a block is needed from its start back to the ends of its predecessors.
  void extend_over_blocks() {
    std::vector<uint32_t> low = first_, high = first_;
    for (Block b : f_.layout) {
      for (const Edge& e : f_.successors(b)) {
        uint32_t to = e.to.index();
        low[to] = std::min(low[to], last_[b.index()]);
        high[to] = std::max(high[to], last_[b.index()]);
      }
    }
    for (Block b : f_.layout) {
      for (Value v : live_.live_in[b.index()]) { extend(v, low[b.index()], high[b.index()]); }
    }
  }

  const Function& f_;
  const Liveness& live_;
  std::vector<Interval> of_;
  std::vector<uint8_t> wanted_;
  std::vector<uint32_t> defined_;  // by value: position of its instruction, 0: none so far
  std::vector<uint32_t> first_, last_;
  uint32_t last_call_ = 0;  // position of the last call so far in the block; 0: none
};

}  // namespace

FrameLayout layout_frame(const Function& f, const Liveness& live) {
  FrameLayout frame;
  frame.slot.resize(f.values.size());
  using Busy = std::pair<uint32_t, int32_t>;  // end of the lifetime, slot
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
  std::vector<int32_t> free;
  int32_t next = kSlabSlot;
  for (const Interval& i : Lifetimes(f, live).run()) {
    while (!busy.empty() && busy.top().first <= i.start) {
      free.push_back(busy.top().second);
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
    busy.push({i.end, slot});
  }
  frame.size = (static_cast<uint32_t>(-next) + 15) & ~15u;
  return frame;
}

}  // namespace uptier::jit
