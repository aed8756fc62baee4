#include "jit/opt/value_speculation.h"

#include <algorithm>
#include <map>

#include "jit/analysis/control_flow.h"
#include "jit/analysis/param_uses.h"
#include "jit/frontend/block_exits.h"
#include "jit/ir/semantics.h"

namespace uptier::jit {
namespace {

struct Guess {
  Value value;
  uint32_t exit = 0;   // index among value_probes()
  uint64_t min = 0;    // bits of the value's type
  uint64_t width = 0;  // max - min
};

class ValueGuesser {
 public:
  ValueGuesser(Function& f, const DeoptContext& c, LoopId entered_at)
      : f_(f), live_(c.live), exits_(f, c), control_(analyze_control_flow(f)), original_(f.layout) {
    for (Block b : original_) {
      const Inst& first = f.inst(f.block(b).insts.front());
      bool entered =
          first.op == Opcode::kLoopHeader && entered_at.valid() && first.aux == entered_at.index();
      if (entered) entered_ = b;
    }
  }

  uint32_t run(std::span<const SiteValues> guesses) {
    std::vector<Guess> all = match(guesses);
    std::vector<Value> values;
    for (const Guess& g : all) values.push_back(g.value);
    auto steered = telling_uses(f_, values), bounded = ranged_uses(f_, values);
    uint32_t placed = 0;
    for (size_t k = 0; k < all.size(); ++k) {
      Block b = place_of(all[k].value, (all[k].width == 0 ? steered : bounded)[k]);
      if (!b.valid()) continue;
      place(all[k], b);
      ++placed;
    }
    return placed;
  }

 private:
  // Returns one guess for each value: the first.
  std::vector<Guess> match(std::span<const SiteValues> guesses) {
    std::vector<Guess> all;
    std::vector<InstId> probes = value_probes(f_);
    for (uint32_t n = 0; n < probes.size(); ++n) {
      const Inst& probe = f_.inst(probes[n]);
      auto at = std::ranges::find(guesses, probe.aux, &SiteValues::site);
      if (at == guesses.end() || at->min > at->max) continue;
      Value v = f_.args(probe)[0];
      Type t = f_.type_of(v);
      uint64_t min = clip(t, static_cast<uint64_t>(at->min));
      uint64_t width = clip(t, static_cast<uint64_t>(at->max) - static_cast<uint64_t>(at->min));
      InstId def = f_.value(v).inst;
      bool known = def.valid() && f_.inst(def).op == Opcode::kConst;
      bool again = std::ranges::find(all, v, &Guess::value) != all.end();
      bool says_nothing = width == clip(t, UINT64_MAX);
      if (!known && !again && !says_nothing) all.push_back({v, n, min, width});
    }
    return all;
  }

  // ---- The place of a guard --------------------------------------------------------------------

  // Returns the block to begin with a guard; none if a guard is not worthwhile.
  Block place_of(Value v, const std::vector<TellingUse>& uses) {
    const ValueData& d = f_.value(v);
    if (!control_.dominators.reachable(d.block)) return Block::none();
    bool param = !d.inst.valid() && d.block != f_.entry();
    Block best = param ? d.block : Block::none();
    double most = 0;
    // By Block::index(): uses that this child of the definition's block dominates.
    std::map<uint32_t, double> below;
    for (const TellingUse& u : uses) {
      if (!control_.dominates(d.block, u.block)) continue;
      Block b = param ? d.block : next_below(d.block, u.block);
      if (!b.valid()) continue;
      double worth = below[b.index()] += u.worth;
      if (worth > most) {
        most = worth;
        best = b;
      }
    }
    if (most == 0 || !lives(v, best)) return Block::none();
    bool reached = !entered_.valid() || control_.dominates(entered_, best);
    return reached ? best : Block::none();
  }

  // Returns whether the value itself is still live: the uses below may all be of values computed
  // from it.
  bool lives(Value v, Block b) const {
    std::vector<Value> live = live_at_start(f_, live_, b);
    return std::ranges::find(live, v) != live.end();
  }

  // Returns the child of `top` in the dominator tree that dominates `b`; none for `top` itself.
  Block next_below(Block top, Block b) const {
    Block child = Block::none();
    for (; b != top; b = control_.idom(b)) child = b;
    return child;
  }

  // Returns the only edge from outside into a loop with header `b`; none if there are several.
  const Predecessor* way_in(Block b) const {
    const Predecessor* only = nullptr;
    bool loops = false;
    for (const Predecessor& p : control_.preds[b.index()]) {
      bool back = control_.dominates(b, p.from);
      loops |= back;
      if (back) continue;
      if (only != nullptr) return nullptr;
      only = &p;
    }
    return loops ? only : nullptr;
  }

  // ---- The guard -------------------------------------------------------------------------------

  void place(const Guess& g, Block b) {
    const ValueData d = f_.value(g.value);
    const Predecessor* in = way_in(b);
    bool own = !d.inst.valid() && d.block == b;
    bool on_edge = in != nullptr && !own && b != entered_;
    std::vector<InstId> out;
    if (!on_edge) {
      Value known = ask(g, b, b, {}, exits_.in_loop(b), out);
      replace(g.value, known, b);
      auto& insts = f_.block(b).insts;
      bool header = f_.inst(insts.front()).op == Opcode::kLoopHeader;
      insts.insert(insts.begin() + (header ? 1 : 0), out.begin(), out.end());
      return;
    }
    Block e = block_on(b, *in);
    auto list = f_.list(f_.successors(e)[0].args);
    std::vector<Value> passed(list.begin(), list.end());
    Value known = ask(g, e, b, passed, exits_.in_loop(in->from), out);
    replace(g.value, known, b);
    auto& insts = f_.block(e).insts;
    insts.insert(insts.end() - 1, out.begin(), out.end());
    for (Value& v : f_.list(f_.successors(e)[0].args)) {
      if (known.valid() && v == g.value) v = known;
    }
  }

  // Returns the new block on the edge, which jumps to the edge's target.
  Block block_on(Block to, const Predecessor& p) {
    auto [at, fresh] = on_edges_.try_emplace(to.index());
    if (!fresh) return at->second;
    Block e = at->second = f_.add_block();
    f_.layout.push_back(e);
    Inst jump{.op = Opcode::kJump};
    jump.edges_at = static_cast<uint32_t>(f_.edges.size());
    jump.edge_count = 1;
    f_.edges.push_back(Edge(f_.edges[p.edge]));
    f_.edges[p.edge] = {e, {}};
    f_.append(e, jump, Type::kNone);
    return e;
  }

  // Makes a guard in `b` that leaves for the start of `to`. Returns the constant that the value
  // equals after it; none for a range.
  Value ask(const Guess& g, Block b, Block to, std::span<const Value> passed, bool in_loop,
            std::vector<InstId>& out) {
    Type t = f_.type_of(g.value);
    Value min = constant(b, t, g.min, out);
    bool one = g.width == 0;
    Value x = g.value, y = min;
    if (!one) {
      x = make(b, {.op = Opcode::kSub, .type = t}, {g.value, min}, t, out);
      y = constant(b, t, g.width, out);
    }
    Opcode op = one ? Opcode::kEq : Opcode::kLeU;
    Value holds = make(b, {.op = op, .type = t}, {x, y}, Type::kI32, out);
    exits_.add_value(to, holds, g.exit, passed, in_loop, out);
    return one ? min : Value::none();
  }

  Value make(Block b, Inst i, std::initializer_list<Value> args, Type result,
             std::vector<InstId>& out) {
    i.args = f_.make_list({args.begin(), args.size()});
    return exits_.make(b, i, result, out);
  }
  Value constant(Block b, Type t, uint64_t bits, std::vector<InstId>& out) {
    return exits_.make(b, {.op = Opcode::kConst, .type = t, .imm = bits}, t, out);
  }

  // Replaces a value by a constant in all blocks that `top` dominates.
  void replace(Value v, Value known, Block top) {
    if (!known.valid()) return;
    for (Block b : original_) {
      if (!control_.dominates(top, b)) continue;
      replace_in(b, v, known);
      auto edge = on_edges_.find(b.index());
      if (b != top && edge != on_edges_.end()) replace_in(edge->second, v, known);
    }
  }

  void replace_in(Block b, Value v, Value known) {
    auto put = [&](Value& x) {
      if (x == v) x = known;
    };
    for (InstId id : f_.block(b).insts) {
      // A header describes the frame before the guard, which may directly follow it.
      if (f_.inst(id).op == Opcode::kLoopHeader) continue;
      for (Value& x : f_.args(f_.inst(id))) put(x);
    }
    for (Edge& e : f_.successors(b)) {
      for (Value& x : f_.list(e.args)) put(x);
    }
  }

  Function& f_;
  const Liveness& live_;
  BlockExits exits_;
  ControlFlow control_;          // of the original blocks
  std::vector<Block> original_;  // the original blocks
  Block entered_;
  // By Block::index() of a loop's header: the block on the edge into the loop.
  std::map<uint32_t, Block> on_edges_;
};

}  // namespace

uint32_t value_speculation(Function& f, const DeoptContext& c, std::span<const SiteValues> guesses,
                           LoopId entered_at) {
  if (guesses.empty()) return 0;
  return ValueGuesser(f, c, entered_at).run(guesses);
}

}  // namespace uptier::jit
