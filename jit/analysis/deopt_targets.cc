#include "jit/analysis/deopt_targets.h"

#include <algorithm>

#include "jit/ir/frame_memory.h"

namespace uptier::jit {
namespace {

bool is_constant(const Function& f, Value v) {
  InstId i = f.value(v).inst;
  return i.valid() && f.inst(i).op == Opcode::kConst;
}

// Calls `visit(place)` for each frame_state of a block that a guard exits to.
template <typename Visit>
void each_guarded(const Function& f, Block b, Visit visit) {
  const auto& insts = f.block(b).insts;
  uint32_t last = UINT32_MAX;  // the state in force
  bool told = false;
  for (uint32_t n = 0; n < insts.size(); ++n) {
    const Inst& i = f.inst(insts[n]);
    if (i.op == Opcode::kFrameState) {
      last = n;
      told = false;
    } else if ((info(i.op).effects & kWrites) != 0 && !stores_in_frame(f, i)) {
      last = UINT32_MAX;
    } else if (i.op == Opcode::kGuard && last != UINT32_MAX && !told) {
      told = true;
      visit(last);
    }
  }
}

// Walks a block backwards with the set of needed values in `needed`: by value, empty before and
// after.
class BlockWalk {
 public:
  BlockWalk(const Function& f, const Liveness& live, Block b, std::vector<bool>& needed)
      : f_(f), needed_(needed) {
    const auto& insts = f.block(b).insts;
    at_ = static_cast<uint32_t>(insts.size());
    block_ = b;
    for (const Edge& e : f.successors(b)) {
      for (Value v : live.live_in[e.to.index()]) need(v);
      for (Value v : f.list(e.args)) need(v);
    }
  }

  ~BlockWalk() {
    for (Value v : list_) needed_[v.index()] = false;
  }
  BlockWalk(const BlockWalk&) = delete;
  BlockWalk& operator=(const BlockWalk&) = delete;

  // Returns the values needed after the instruction at `place`; places must fall from call to call.
  std::vector<Value> behind(uint32_t place) {
    const auto& insts = f_.block(block_).insts;
    for (; at_ > place + 1; --at_) step(f_.inst(insts[at_ - 1]));
    // Drops values defined on the way; otherwise each call would look at the whole block again.
    std::erase_if(list_, [&](Value v) { return !needed_[v.index()]; });
    std::sort(list_.begin(), list_.end(), [](Value a, Value b) { return a.index() < b.index(); });
    list_.erase(std::unique(list_.begin(), list_.end()), list_.end());
    return list_;
  }

 private:
  // Only plain copies are entered at points, and they do not read the values of probes.
  void step(const Inst& i) {
    if (i.result.valid()) needed_[i.result.index()] = false;
    if (i.op == Opcode::kProbe || i.op == Opcode::kLoopHeader) return;
    for (Value v : f_.args(i)) need(v);
  }

  void need(Value v) {
    if (needed_[v.index()] || is_constant(f_, v)) return;
    needed_[v.index()] = true;
    list_.push_back(v);
  }

  const Function& f_;
  Block block_;
  uint32_t at_;
  std::vector<bool>& needed_;
  std::vector<Value> list_;  // values that are needed, or were since behind() was last called
};

}  // namespace

std::vector<StatePoint> state_points(const Function& f, const Liveness& live) {
  std::vector<StatePoint> points;
  if (!live.has_guards) return points;
  std::vector<bool> needed(f.values.size());
  for (Block b : f.layout) {
    size_t first = points.size();
    each_guarded(f, b, [&](uint32_t place) {
      StatePoint p{f.block(b).insts[place], b, place, 0, {}};
      p.point = static_cast<uint32_t>(f.layout.size() + points.size());
      points.push_back(std::move(p));
    });
    if (points.size() == first) continue;
    BlockWalk walk(f, live, b, needed);
    for (size_t n = points.size(); n-- > first;) points[n].live = walk.behind(points[n].place);
  }
  return points;
}

std::vector<CallPoint> call_points(const Function& f, const Liveness& live, size_t states) {
  std::vector<CallPoint> points;
  std::vector<uint32_t> places;
  std::vector<bool> needed(f.values.size());
  for (Block b : f.layout) {
    const auto& insts = f.block(b).insts;
    places.clear();
    for (uint32_t n = 0; n < insts.size(); ++n) {
      if (returns_to_point(f.inst(insts[n]).op)) places.push_back(n);
    }
    if (places.empty()) continue;
    size_t first = points.size();
    points.resize(first + places.size());
    BlockWalk walk(f, live, b, needed);
    for (size_t n = places.size(); n-- > 0;) {
      InstId call = insts[places[n]];
      auto point = static_cast<uint32_t>(first_call_point(f, states) + first + n);
      points[first + n] = {call, point, walk.behind(places[n])};
      std::erase(points[first + n].live, f.inst(call).result);
    }
  }
  return points;
}

std::vector<Value> live_at_start(const Function& f, const Liveness& live, Block b) {
  std::vector<Value> values;
  for (Value v : f.params(b)) values.push_back(v);
  for (Value v : live.live_in[b.index()]) {
    if (!is_constant(f, v)) values.push_back(v);
  }
  return values;
}

uint32_t count_guards(const Function& f) {
  uint32_t n = 0;
  for (Block b : f.layout) {
    for (InstId i : f.block(b).insts) n += f.inst(i).op == Opcode::kGuard;
  }
  return n;
}

std::vector<InstId> value_probes(const Function& f) {
  std::vector<InstId> probes;
  for (Block b : f.layout) {
    for (InstId id : f.block(b).insts) {
      const Inst& i = f.inst(id);
      if (i.op != Opcode::kProbe || (i.flags & kProbeOwn) != 0 || i.args.size != 1) continue;
      bool values = probe_kind(i) == ProbeKind::kValue || probe_kind(i) == ProbeKind::kRange;
      if (values && is_int(f.type_of(f.args(i)[0]))) probes.push_back(id);
    }
  }
  return probes;
}

}  // namespace uptier::jit
