// Store-to-load forwarding, redundant-load and dead-store elimination. A block keeps facts about
// memory (place, type, value), at most kMostFacts of them; the oldest is dropped first. A block
// starts with the facts that all its predecessors end with. A loop header starts without facts
// about places that the loop may write, and about places of alias class 0: another thread may write
// those to stop the loop, so each iteration must read them again.
//
//   load    of a known place, as the same type: replaced by the value that was stored or loaded there.
//           That access did not fault, so this one does not
//   store   drops the facts about places that it may have written
//   call    drops all facts
//
// A store is dropped if the next store to the same place follows, and nothing between them can read
// the place or leave the function. If it may trap, the next one must trap instead: it must be as
// wide, no store or count may lie between them, and it takes over the origin of the first. An
// access to a known place does not trap.
#include <algorithm>

#include "jit/analysis/control_flow.h"
#include "jit/analysis/loops.h"
#include "jit/analysis/memory_place.h"
#include "jit/opt/passes.h"
#include "jit/opt/rewriter.h"

namespace uptier::jit {
namespace {

constexpr size_t kMostFacts = 48;

struct MemoryFact {
  MemoryPlace place;
  Opcode load;  // the load that gives `value`
  Type type;
  Value value;
};

class MemoryForwarder {
 public:
  MemoryForwarder(Function& f, bool counting)
      : f_(f),
        counting_(counting),
        r_(f),
        control_(analyze_control_flow(f)),
        loops_(find_loops(f, control_)),
        at_end_(f.blocks.size()),
        harmless_(f.insts.size()) {}

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
      case Shape::kLoad: return load(id);
      case Shape::kStore: store(id); return false;
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
      if (!seen) return facts_.clear();  // a cycle that is not a natural loop
      if (first) facts_ = at_end_[p.from.index()];
      if (!first) keep_common(at_end_[p.from.index()]);
      first = false;
      if (facts_.empty()) return;
    }
    if (!loops_.is_header(b)) return;
    const Writes& w = writes_[loops_.loop_of[b.index()]];
    std::erase_if(facts_,
                  [&](const MemoryFact& k) { return k.place.alias == 0 || w.may_touch(k.place); });
  }

  void keep_common(const std::vector<MemoryFact>& other) {
    std::erase_if(facts_, [&](const MemoryFact& k) {
      return std::none_of(other.begin(), other.end(), [&](const MemoryFact& o) {
        return o.load == k.load && o.type == k.type && o.value == k.value &&
               same_place(o.place, k.place);
      });
    });
  }

  void forget(const MemoryPlace& p) {
    std::erase_if(facts_, [&](const MemoryFact& k) { return may_touch(k.place, p); });
  }

  // Drops facts after a store to an unknown place of this alias class.
  void forget_class(unsigned alias) {
    std::erase_if(facts_, [&](const MemoryFact& k) {
      return alias == 0 || k.place.alias == 0 || k.place.alias == alias;
    });
  }

  // Returns whether a place is known to have been accessed, so that accessing it does not trap.
  bool is_known(const MemoryPlace& p) const {
    return std::any_of(facts_.begin(), facts_.end(), [&](const MemoryFact& k) {
      return same_place(k.place, p) && p.width <= k.place.width;
    });
  }

  bool load(InstId id) {
    const Inst& i = f_.inst(id);
    if ((i.flags & kMemInvariant) != 0) return false;
    MemoryPlace p = place_of(f_, i);
    for (const MemoryFact& k : facts_) {
      if (k.load != i.op || k.type != i.type || !same_place(k.place, p)) continue;
      r_.replace(i.result, k.value);
      return true;
    }
    harmless_[id.index()] = is_known(p);
    learn({p, i.op, i.type, i.result});
    return false;
  }

  void store(InstId id) {
    const Inst& i = f_.inst(id);
    MemoryPlace p = place_of(f_, i);
    harmless_[id.index()] = is_known(p);
    forget(p);
    if (i.op == Opcode::kStore) learn({p, Opcode::kLoad, i.type, f_.args(i)[0]});
  }

  void learn(const MemoryFact& k) {
    if (facts_.size() == kMostFacts) facts_.erase(facts_.begin());
    facts_.push_back(k);
  }

  // A store whose place no later instruction can have read, in the walk backwards.
  struct Pending {
    MemoryPlace place;
    InstId store;
    bool next;  // no store or count came after it either
  };

  bool may_trap(InstId id) const {
    return (f_.inst(id).flags & kMemTraps) != 0 && !harmless_[id.index()];
  }

  // Returns whether a store may be dropped because of a later one, which then traps in its place.
  bool replaces(const Pending& later, InstId id, const MemoryPlace& p) const {
    if (!same_place(p, later.place) || p.width > later.place.width) return false;
    if (!may_trap(id)) return p.width == later.place.width || !may_trap(later.store);
    bool traps = (f_.inst(later.store).flags & kMemTraps) != 0;
    return later.next && traps && p.width == later.place.width;
  }

  // Makes a later store trap in place of a dropped one that may trap.
  void trap_for(InstId id, Pending later) {
    f_.inst(later.store).loc = f_.inst(id).loc;
    f_.inst(later.store).body = f_.inst(id).body;
    harmless_[later.store.index()] = false;
    pending_.assign(1, later);
  }

  void drop_dead_stores(Block b) {
    auto& insts = f_.block(b).insts;
    pending_.clear();
    size_t end = insts.size();
    for (size_t n = insts.size(); n-- > 0;) {
      if (is_dead_store(insts[n])) continue;
      insts[--end] = insts[n];
    }
    insts.erase(insts.begin(), insts.begin() + static_cast<ptrdiff_t>(end));
  }

  // Returns whether a store is dead. Otherwise updates the pending stores for the instruction.
  bool is_dead_store(InstId id) {
    const Inst& i = f_.inst(id);
    Shape s = info(i.op).shape;
    if (s == Shape::kStore) {
      MemoryPlace p = place_of(f_, i);
      auto by = std::find_if(pending_.begin(), pending_.end(),
                             [&](const Pending& later) { return replaces(later, id, p); });
      if (by != pending_.end()) {
        if (may_trap(id)) trap_for(id, *by);
        return true;
      }
      if (may_trap(id)) pending_.clear();
      for (Pending& q : pending_) q.next = false;
      if (pending_.size() < kMostFacts) pending_.push_back({p, id, true});
    } else if (s == Shape::kLoad && !may_trap(id)) {
      MemoryPlace p = place_of(f_, i);
      std::erase_if(pending_, [&](const Pending& q) { return may_touch(p, q.place); });
    } else if ((info(i.op).effects & (kReads | kWrites | kCanTrap | kEndsBlock)) != 0 ||
               i.op == Opcode::kFrameState) {
      pending_.clear();
    } else if (counting_ && i.op == Opcode::kProbe) {
      for (Pending& q : pending_) q.next = false;
    }
    return false;
  }

  Function& f_;
  const bool counting_;
  Rewriter r_;
  ControlFlow control_;
  LoopNest loops_;
  std::vector<Writes> writes_;  // by loop
  Block block_ = Block::none();
  std::vector<MemoryFact> facts_;
  std::vector<std::vector<MemoryFact>> at_end_;  // by Block::index()
  std::vector<bool> harmless_;                   // by InstId::index(): an access that does not trap
  std::vector<Pending> pending_;
};

}  // namespace

void store_to_load_forwarding(Function& f, bool counting) { MemoryForwarder(f, counting).run(); }

}  // namespace uptier::jit
