// What a block knows of memory, in extended basic blocks: a block begins with what its only
// predecessor ended with, a join knows nothing. Facts are (place, type, value), at most kMostFacts
// of them, the oldest goes first.
//
//   a load of a place that is known, as the same type, is the value that was stored or loaded
//   there: that access did not fault, so this one does not a store forgets what it may have
//   touched, a call all but invariant places a store that the same place's next store follows, with
//   nothing between that could read it or leave the function, is dropped
//
// Two accesses do not touch when their alias classes differ, or when base and index are the same
// but for a constant and the bytes are disjoint. An i32 index wraps around at 2^32, which is no
// danger while offsets are small.
#include <algorithm>

#include "jit/ir/semantics.h"
#include "jit/opt/control_flow.h"
#include "jit/opt/passes.h"
#include "jit/opt/rewriter.h"

namespace uptier::jit {
namespace {

constexpr size_t kMostFacts = 48;
constexpr int64_t kSmallOffset = int64_t{1} << 30;

// Where an access goes. `root` and `distance` take the index apart: root + a constant.
struct Place {
  Value base, index;
  uint64_t offset = 0;
  Value root;
  int64_t distance = 0;  // with the offset; valid when `near`
  bool near = false;
  uint32_t width = 0;
  unsigned alias = 0;
};

bool same_place(const Place& a, const Place& b) {
  return a.base == b.base && a.index == b.index && a.offset == b.offset;
}

bool may_touch(const Place& a, const Place& b) {
  if (a.alias != 0 && b.alias != 0 && a.alias != b.alias) return false;
  if (a.base != b.base || a.root != b.root || !a.near || !b.near) return true;
  return a.distance < b.distance + b.width && b.distance < a.distance + a.width;
}

struct Fact {
  Place place;
  Opcode load;  // the load that gives `value`
  Type type;
  Value value;
};

class MemoryForwarder {
 public:
  explicit MemoryForwarder(Function& f)
      : f_(f), r_(f), control_(analyze_control_flow(f)), at_end_(f.blocks.size()) {}

  void run() {
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
      default: break;
    }
    if ((info(i.op).effects & kEndsBlock) != 0) at_end_[block_.index()] = facts_;
    return false;
  }

  void enter(Block b) {
    block_ = b;
    facts_.clear();
    const auto& preds = control_.preds[b.index()];
    if (preds.size() != 1 || b == f_.entry()) return;
    facts_ = at_end_[preds[0].from.index()];
  }

  bool load(const Inst& i) {
    if ((i.flags & kMemInvariant) != 0) return false;
    Place p = place_of(i, 0);
    for (const Fact& k : facts_) {
      if (k.load != i.op || k.type != i.type || !same_place(k.place, p)) continue;
      r_.replace(i.result, k.value);
      return true;
    }
    learn({p, i.op, i.type, i.result});
    return false;
  }

  void store(const Inst& i) {
    Place p = place_of(i, 1);
    std::erase_if(facts_, [&](const Fact& k) { return may_touch(k.place, p); });
    if (i.op == Opcode::kStore) learn({p, Opcode::kLoad, i.type, f_.args(i)[0]});
  }

  void learn(const Fact& k) {
    if (facts_.size() == kMostFacts) facts_.erase(facts_.begin());
    facts_.push_back(k);
  }

  // The address begins at operand `first`.
  Place place_of(const Inst& i, uint32_t first) const {
    auto args = f_.args(i).subspan(first);
    Place p;
    p.base = args[0];
    p.offset = i.imm;
    p.width = access_size(i.op, i.type);
    p.alias = alias_class_of(i.flags);
    auto offset = static_cast<int64_t>(i.imm);
    p.near = offset < kSmallOffset;
    p.distance = offset;
    if (args.size() < 2) return p;
    p.index = p.root = args[1];
    const Inst* add = r_.def(p.index, Opcode::kAdd);
    auto c = add != nullptr ? r_.constant_of(f_.args(*add)[1]) : std::nullopt;
    if (!c) return p;
    int64_t step =
        add->type == Type::kI32 ? int64_t{static_cast<int32_t>(*c)} : static_cast<int64_t>(*c);
    if (step <= -kSmallOffset || step >= kSmallOffset) return p;
    p.root = f_.args(*add)[0];
    p.distance += step;
    return p;
  }

  // Backwards: `pending` are the places that are stored to again before anything could look.
  void drop_dead_stores(Block b) {
    auto& insts = f_.block(b).insts;
    std::vector<Place> pending;
    std::vector<InstId> dead;
    for (size_t n = insts.size(); n-- > 0;) {
      const Inst& i = f_.inst(insts[n]);
      Shape s = info(i.op).shape;
      bool plain = (i.flags & kMemTraps) == 0;
      if (s == Shape::kStore && plain) {
        Place p = place_of(i, 1);
        bool again = std::any_of(pending.begin(), pending.end(), [&](const Place& q) {
          return same_place(p, q) && p.width <= q.width;
        });
        if (again) dead.push_back(insts[n]);
        if (!again && pending.size() < kMostFacts) pending.push_back(p);
      } else if (s == Shape::kLoad && plain) {
        Place p = place_of(i, 0);
        std::erase_if(pending, [&](const Place& q) { return may_touch(p, q); });
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
  Block block_ = Block::none();
  std::vector<Fact> facts_;
  std::vector<std::vector<Fact>> at_end_;  // by Block::index()
};

}  // namespace

void forward_memory(Function& f) { MemoryForwarder(f).run(); }

}  // namespace uptier::jit
