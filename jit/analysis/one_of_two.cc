#include "jit/analysis/one_of_two.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "jit/analysis/loops.h"
#include "jit/analysis/memory_place.h"

namespace uptier::jit {
namespace {

struct Choice {
  InstId select, store;
};

// The places of a loop's loads.
class ReadPlaces {
 public:
  ReadPlaces(const Function& f, const LoopNest& nest, uint32_t loop) {
    for (Block b : f.layout) {
      if (!nest.contains(loop, b)) continue;
      for (InstId id : f.block(b).insts) {
        const Inst& i = f.inst(id);
        if (info(i.op).shape == Shape::kLoad) places_.insert(key(place_of(f, i)));
      }
    }
  }

  bool contains(const MemoryPlace& p) const { return places_.contains(key(p)); }

 private:
  using Key = std::tuple<uint32_t, uint32_t, int64_t>;
  static Key key(const MemoryPlace& p) { return {p.base.index(), p.root.index(), p.distance}; }

  std::set<Key> places_;
};

// Finds stores after a `select`, in its block, through the selected address.
std::vector<Choice> stores_by_choice(const Function& f) {
  std::vector<Choice> found;
  for (Block b : f.layout) {
    for (InstId id : f.block(b).insts) {
      const Inst& i = f.inst(id);
      if (info(i.op).shape != Shape::kStore) continue;
      for (Value v : f.args(i).subspan(1)) {
        const ValueData& d = f.value(v);
        bool selects = d.inst.valid() && f.inst(d.inst).op == Opcode::kSelect && d.block == b;
        if (selects) found.push_back({d.inst, id});
      }
    }
  }
  return found;
}

}  // namespace

std::unordered_set<uint32_t> one_of_two(const Function& f) {
  std::unordered_set<uint32_t> results;
  std::vector<Choice> choices = stores_by_choice(f);
  if (choices.empty()) return results;
  LoopNest nest = find_loops(f, analyze_control_flow(f));
  std::map<uint32_t, ReadPlaces> read;
  for (const Choice& c : choices) {
    const Inst& select = f.inst(c.select);
    uint32_t loop = nest.loop_of[f.value(select.result).block.index()];
    if (loop == kNoLoop) continue;
    const ReadPlaces& places = read.try_emplace(loop, f, nest, loop).first->second;
    auto reads = [&](Value side) {
      return places.contains(place_if(f, f.inst(c.store), select.result, side));
    };
    auto sides = f.args(select).subspan(1);
    if (std::ranges::any_of(sides, reads)) results.insert(select.result.index());
  }
  return results;
}

}  // namespace uptier::jit
