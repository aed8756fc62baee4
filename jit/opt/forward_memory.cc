// What a block knows of memory: places and the values in them. A block begins with what all blocks
// before it ended with; where a loop begins, without what the loop may write, and without places
// of class 0: each round reads those anew, as they may be words by which others stop the loop.
// Facts are (place, type, value), at most kMostFacts of them, the oldest goes first.
//
//   a load of a place that is known, as the same type, is the value that was stored or loaded
//   there: that access did not fault, so this one does not
//
//   a store forgets what it may have touched, a call all but invariant places
//
//   a store that the same place's next store follows, with nothing between that could read it or
//   leave the function, is dropped
#include <algorithm>

#include "jit/opt/control_flow.h"
#include "jit/opt/loops.h"
#include "jit/opt/memory_place.h"
#include "jit/opt/passes.h"
#include "jit/opt/rewriter.h"

namespace uptier::jit {
namespace {

constexpr size_t kMostFacts = 48;

struct Fact {
  MemoryPlace place;
  Opcode load;  // the load that gives `value`
  Type type;
  Value value;
};

class MemoryForwarder {
 public:
  explicit MemoryForwarder(Function& f)
      : f_(f),
        r_(f),
        control_(analyze_control_flow(f)),
        loops_(find_loops(f, control_)),
        at_end_(f.blocks.size()) {}

  void run() {
    find_writes();
    r_.run(control_.order(), [&](InstId i) { return !visit(i); });
    for (Block b : f_.layout) drop_dead_stores(b);
  }

 private:
  // Returns whether the instruction was replaced.
  bool visit(InstId id) {
    if (r_.block() != block_) enter(r_.block());
    const Inst& i = f_.inst(id);
    switch (info(i.op).shape) {
      case Shape::kLoad: return load(i);
      case Shape::kStore: store(i); return false;
      case Shape::kCall:
      case Shape::kCallIndirect:
      case Shape::kCallHost: facts_.clear(); return false;
      case Shape::kBulk: forget_class(alias_class_of(i.flags)); return false;
      default: break;
    }
    if ((info(i.op).effects & kEndsBlock) != 0) at_end_[block_.index()] = facts_;
    return false;
  }

  void find_writes() {
    writes_.resize(loops_.loops.size());
    if (writes_.empty()) return;
    for (Block b : f_.layout) {
      for (uint32_t l = loops_.loop_of[b.index()]; l != kNoLoop; l = loops_.loops[l].parent) {
        writes_[l].add(f_, b);
      }
    }
  }

  void enter(Block b) {
    block_ = b;
    facts_.clear();
    bool first = true;
    for (const Predecessor& p : control_.preds[b.index()]) {
      bool seen = control_.position[p.from.index()] < control_.position[b.index()];
      if (!seen && control_.dominates(b, p.from)) continue;
      if (!seen) return facts_.clear();  // a cycle that is no loop
      if (first) facts_ = at_end_[p.from.index()];
      if (!first) keep_common(at_end_[p.from.index()]);
      first = false;
      if (facts_.empty()) return;
    }
    if (!loops_.is_header(b)) return;
    const Writes& w = writes_[loops_.loop_of[b.index()]];
    std::erase_if(facts_,
                  [&](const Fact& k) { return k.place.alias == 0 || w.may_touch(k.place); });
  }

  void keep_common(const std::vector<Fact>& other) {
    std::erase_if(facts_, [&](const Fact& k) {
      return std::none_of(other.begin(), other.end(), [&](const Fact& o) {
        return o.load == k.load && o.type == k.type && o.value == k.value &&
               same_place(o.place, k.place);
      });
    });
  }

  void forget(const MemoryPlace& p) {
    std::erase_if(facts_, [&](const Fact& k) { return may_touch(k.place, p); });
  }

  // Something somewhere is stored to.
  void forget_class(unsigned alias) {
    std::erase_if(facts_, [&](const Fact& k) {
      return alias == 0 || k.place.alias == 0 || k.place.alias == alias;
    });
  }

  bool load(const Inst& i) {
    if ((i.flags & kMemInvariant) != 0) return false;
    MemoryPlace p = place_of(f_, i);
    for (const Fact& k : facts_) {
      if (k.load != i.op || k.type != i.type || !same_place(k.place, p)) continue;
      r_.replace(i.result, k.value);
      return true;
    }
    learn({p, i.op, i.type, i.result});
    return false;
  }

  void store(const Inst& i) {
    MemoryPlace p = place_of(f_, i);
    forget(p);
    if (i.op == Opcode::kStore) learn({p, Opcode::kLoad, i.type, f_.args(i)[0]});
  }

  void learn(const Fact& k) {
    if (facts_.size() == kMostFacts) facts_.erase(facts_.begin());
    facts_.push_back(k);
  }

  // Backwards: `pending` are the places that are stored to again before anything could look.
  void drop_dead_stores(Block b) {
    auto& insts = f_.block(b).insts;
    std::vector<MemoryPlace> pending;
    std::vector<InstId> dead;
    for (size_t n = insts.size(); n-- > 0;) {
      const Inst& i = f_.inst(insts[n]);
      Shape s = info(i.op).shape;
      bool plain = (i.flags & kMemTraps) == 0;
      if (s == Shape::kStore && plain) {
        MemoryPlace p = place_of(f_, i);
        bool again = std::any_of(pending.begin(), pending.end(), [&](const MemoryPlace& q) {
          return same_place(p, q) && p.width <= q.width;
        });
        if (again) dead.push_back(insts[n]);
        if (!again && pending.size() < kMostFacts) pending.push_back(p);
      } else if (s == Shape::kLoad && plain) {
        MemoryPlace p = place_of(f_, i);
        std::erase_if(pending, [&](const MemoryPlace& q) { return may_touch(p, q); });
      } else if ((info(i.op).effects & (kReads | kWrites | kCanTrap | kEndsBlock)) != 0 ||
                 i.op == Opcode::kFrameState) {
        pending.clear();
      }
    }
    std::erase_if(insts,
                  [&](InstId i) { return std::find(dead.begin(), dead.end(), i) != dead.end(); });
  }

  Function& f_;
  Rewriter r_;
  ControlFlow control_;
  LoopNest loops_;
  std::vector<Writes> writes_;  // by loop
  Block block_ = Block::none();
  std::vector<Fact> facts_;
  std::vector<std::vector<Fact>> at_end_;  // by Block::index()
};

}  // namespace

void forward_memory(Function& f) { MemoryForwarder(f).run(); }

}  // namespace uptier::jit
