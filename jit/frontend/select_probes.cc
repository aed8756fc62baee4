#include "jit/frontend/select_probes.h"

#include <algorithm>
#include <bit>

namespace uptier::jit {
namespace {

bool is_pure(const Inst& i) {
  return i.result.valid() && (info(i.op).effects & ~kCommutes) == kPure;
}

class AwaitedSelects {
 public:
  AwaitedSelects(const Function& f, const LoopForest& forest)
      : f_(f), forest_(forest), preds_(f), address_(f.values.size()), visits_(f.values.size()) {}

  std::vector<InstId> run(size_t most) {
    find_addresses();
    std::vector<InstId> found;
    for (Block b : f_.layout) {
      if (!loop_of(b).valid()) continue;
      for (InstId i : f_.block(b).insts) {
        const Inst& inst = f_.inst(i);
        if (inst.op == Opcode::kSelect && awaited(b, inst.result)) found.push_back(i);
      }
    }
    if (found.size() <= most) return found;
    std::vector<InstId> inner = found;
    std::ranges::stable_sort(inner, std::greater<>{}, [&](InstId i) { return depth(i); });
    inner.resize(most);
    std::erase_if(found, [&](InstId i) { return std::ranges::find(inner, i) == inner.end(); });
    return found;
  }

 private:
  struct Visit {
    uint32_t number = 0;  // 0: not yet visited
    uint32_t low = 0;
    bool open = false;
    bool cyclic = false;
  };
  struct Step {
    Value v;
    std::vector<Value> from;
    size_t next = 0;
  };

  LoopId loop_of(Block b) const { return forest_.innermost[b.index()]; }

  uint32_t depth(InstId i) const {
    return forest_.loop(loop_of(f_.value(f_.inst(i).result).block)).depth;
  }

  bool awaited(Block b, Value v) {
    if (!address_[v.index()]) return false;
    if (writes(loop_of(b))) return true;
    if (visits_[v.index()].number == 0) find_cycles(v);
    return visits_[v.index()].cyclic;
  }

  // ---- Addresses --------------------------------------------------------------------------------

  // Marks the values from which addresses of accesses in loops are computed without going through
  // memory.
  void find_addresses() {
    std::vector<Value> left;
    auto mark = [&](Value v) {
      if (address_[v.index()]) return;
      address_[v.index()] = true;
      left.push_back(v);
    };
    for (Block b : f_.layout) {
      if (!loop_of(b).valid()) continue;
      for (InstId id : f_.block(b).insts) {
        const Inst& i = f_.inst(id);
        Shape s = info(i.op).shape;
        if (s != Shape::kLoad && s != Shape::kStore) continue;
        for (Value v : f_.args(i).subspan(s == Shape::kStore ? 1 : 0)) mark(v);
      }
    }
    while (!left.empty()) {
      Value v = left.back();
      left.pop_back();
      const ValueData& d = f_.value(v);
      if (!d.inst.valid()) {
        for (Value from : passed(v)) mark(from);
      } else if (const Inst& i = f_.inst(d.inst); is_pure(i)) {
        for (Value from : f_.args(i).subspan(i.op == Opcode::kSelect ? 1 : 0)) mark(from);
      }
    }
  }

  bool writes(LoopId l) {
    if (writes_.empty()) writes_.assign(forest_.loops.size(), kUnknown);
    uint8_t& known = writes_[l.index()];
    if (known != kUnknown) return known != 0;
    known = std::ranges::any_of(forest_.loop(l).blocks, [&](Block b) {
      return std::ranges::any_of(f_.block(b).insts, [&](InstId i) {
        return (info(f_.inst(i).op).effects & kWrites) != 0;
      });
    });
    return known != 0;
  }

  // ---- Cycles -----------------------------------------------------------------------------------

  // Returns the values that the edges to a block pass for its parameter.
  std::vector<Value> passed(Value param) const {
    const ValueData& d = f_.value(param);
    std::vector<Value> values;
    for (const Predecessor& p : preds_[d.block.index()]) {
      values.push_back(f_.list(f_.edges[p.edge].args)[d.index]);
    }
    return values;
  }

  // Returns the values that a value is computed from. A value defined outside of loops is on no
  // cycle.
  std::vector<Value> sources(Value v) const {
    const ValueData& d = f_.value(v);
    if (!loop_of(d.block).valid()) return {};
    if (!d.inst.valid()) return passed(v);
    const Inst& i = f_.inst(d.inst);
    if (!is_pure(i) && info(i.op).shape != Shape::kLoad) return {};
    auto args = f_.args(i);
    return {args.begin(), args.end()};
  }

  // Finds the strongly connected components of values and their sources, among all that `v` is
  // computed from. Source: Tarjan, "Depth-first search and linear graph algorithms", 1972, without
  // recursion.
  void find_cycles(Value v) {
    std::vector<Step> path;
    std::vector<Value> open;
    auto enter = [&](Value x) {
      Visit& n = visits_[x.index()];
      n.number = n.low = ++last_;
      n.open = true;
      open.push_back(x);
      path.push_back({x, sources(x)});
    };
    enter(v);
    while (!path.empty()) {
      Step& s = path.back();
      Visit& mine = visits_[s.v.index()];
      if (s.next < s.from.size()) {
        Value x = s.from[s.next++];
        const Visit& other = visits_[x.index()];
        if (other.number == 0) {
          enter(x);
        } else if (other.open) {
          mine.low = std::min(mine.low, other.number);
        }
        continue;
      }
      Value done = s.v;
      path.pop_back();
      if (mine.low == mine.number) close(done, open);
      if (path.empty()) break;
      Visit& below = visits_[path.back().v.index()];
      below.low = std::min(below.low, mine.low);
    }
  }

  void close(Value root, std::vector<Value>& open) {
    bool cyclic = open.back() != root;
    for (Value x = Value::none(); x != root;) {
      x = open.back();
      open.pop_back();
      visits_[x.index()].open = false;
      visits_[x.index()].cyclic = cyclic;
    }
  }

  static constexpr uint8_t kUnknown = 2;

  const Function& f_;
  const LoopForest& forest_;
  Predecessors preds_;
  std::vector<bool> address_;    // by value
  std::vector<Visit> visits_;    // by value
  std::vector<uint8_t> writes_;  // by loop: whether something in it writes memory
  uint32_t last_ = 0;
};

}  // namespace

bool selects_in_loops(const Function& f) {
  return f.loop_count != 0 && std::ranges::any_of(f.layout, [&](Block b) {
           return std::ranges::any_of(f.block(b).insts,
                                      [&](InstId i) { return f.inst(i).op == Opcode::kSelect; });
         });
}

std::vector<SiteId> turn_sites(const Function& f) {
  std::vector<SiteId> sites;
  for (Block b : f.layout) {
    for (InstId i : f.block(b).insts) {
      if (counts_turns(f.inst(i))) sites.push_back(f.inst(i).aux);
    }
  }
  return sites;
}

std::vector<InstId> awaited_selects(const Function& f, const LoopForest& forest, size_t most) {
  if (!selects_in_loops(f)) return {};
  return AwaitedSelects(f, forest).run(most);
}

void place_select_probes(Function& f, const LoopForest& forest) {
  std::vector<InstId> awaited = awaited_selects(f, forest);
  if (awaited.empty() || !turn_sites(f).empty()) return;
  for (InstId id : awaited) {
    Inst probe{.op = Opcode::kProbe, .flags = kProbeOwn | kProbeTurns, .aux = ++f.site_count};
    probe.args = f.make_list({{f.args(f.inst(id))[0]}});
    probe.imm = static_cast<uint64_t>(ProbeKind::kValue);
    InstId made = f.add_inst(probe, Type::kNone);
    // After the select, so that a comparison before it stays next to it.
    auto& insts = f.block(f.value(f.inst(id).result).block).insts;
    insts.insert(std::ranges::find(insts, id) + 1, made);
  }
}

void note_turns(Function& f, std::span<const SelectTurns> seen) {
  if (seen.empty()) return;
  for (Block b : f.layout) {
    const auto& insts = f.block(b).insts;
    for (size_t n = 1; n < insts.size(); ++n) {
      const Inst& probe = f.inst(insts[n]);
      if (!counts_turns(probe)) continue;
      auto at = std::ranges::find(seen, probe.aux, &SelectTurns::site);
      bool enough = at != seen.end() && at->executions() >= kLeastTurns;
      Value condition = f.args(probe)[0];
      for (InstId id : {insts[n - 1], insts[n + 1]}) {
        Inst& i = f.inst(id);
        Opcode asks = id == insts[n - 1] ? Opcode::kSelect : Opcode::kBranch;
        bool its = i.op == asks && f.args(i)[0] == condition;
        if (its) i.imm = enough ? pack_turns(at->counts) : 0;
      }
    }
  }
}

}  // namespace uptier::jit
