// Folds the constant in the sum of an i32 index and a constant into the address, if an earlier
// access proves that the sum does not wrap around:
//
//     load.i32 base[p] traps fenced           p < 2^32 - kFenceBytes: it did not fault
//     i = add p, 8
//     load.i32 base[i]+4                 ->   load.i32 base[p]+12
//
// The fence promises that accesses to the last kFenceBytes below base + 2^32 fault. So after an
// access without an offset its index is below that, and adding up to kFenceBytes to the index does
// not wrap. If the index itself is p - d, with d at most kFenceBytes, it has not wrapped either,
// and p is larger by d. A fact about a value holds wherever the access dominates.
#include <algorithm>

#include "jit/analysis/dominators.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

// An index as a sum of a value and a constant. Any other index is its own root.
struct Sum {
  Value root;
  uint32_t constant = 0;
};

class OffsetFolder {
 public:
  explicit OffsetFolder(Function& f) : f_(f) {}

  void run() {
    if (!is_worth_it()) return;
    room_.assign(f_.values.size(), {});
    doms_ = compute_dominators(f_);
    for (Block b : doms_.order) {
      block_ = b;
      for (InstId id : f_.block(b).insts) visit(f_.inst(id));
    }
  }

 private:
  bool is_fenced(const Inst& i) const {
    Shape s = info(i.op).shape;
    return (s == Shape::kLoad || s == Shape::kStore) && (i.flags & kMemFenced) != 0 &&
           i.args.size == (s == Shape::kLoad ? 2u : 3u) && f_.type_of(index(i)) == Type::kI32;
  }

  Value index(const Inst& i) const { return f_.args(i)[i.args.size - 1]; }

  // Returns whether any access has a sum that could be folded.
  bool is_worth_it() const {
    return std::ranges::any_of(f_.layout, [&](Block b) {
      return std::ranges::any_of(f_.block(b).insts, [&](InstId id) {
        const Inst& i = f_.inst(id);
        if (!is_fenced(i)) return false;
        uint32_t c = sum_of(index(i)).constant;
        return c != 0 && c <= INT32_MAX;
      });
    });
  }

  Sum sum_of(Value v) const {
    InstId id = f_.value(v).inst;
    if (!id.valid() || f_.inst(id).op != Opcode::kAdd) return {v};
    auto args = f_.args(f_.inst(id));
    InstId c = f_.value(args[1]).inst;
    if (!c.valid() || f_.inst(c).op != Opcode::kConst) return {v};
    return {args[0], static_cast<uint32_t>(f_.inst(c).imm)};
  }

  void visit(Inst& i) {
    if (!is_fenced(i)) return;
    Value at = index(i);
    Sum s = sum_of(at);
    uint64_t offset = i.imm;
    if (s.constant != 0 && s.constant <= room(s.root)) {
      if (offset + s.constant <= INT32_MAX) {
        f_.args(i)[i.args.size - 1] = s.root;
        i.imm = offset + s.constant;
      }
      if (offset == 0) learn(s.root, uint64_t{kFenceBytes} + s.constant);
    }
    if (offset != 0) return;
    learn(at, kFenceBytes);
    uint32_t less = 0 - s.constant;
    if (s.constant != 0 && less <= kFenceBytes) learn(s.root, kFenceBytes - less);
  }

  // Returns how much may be added to `v` here without wrapping around.
  uint32_t room(Value v) const {
    const Room& r = room_[v.index()];
    return r.amount != 0 && doms_.dominates(r.from, block_) ? r.amount : 0;
  }

  // Records that `v` is at least `amount` below 2^32. The last of several such facts is kept.
  void learn(Value v, uint64_t amount) {
    if (amount <= room(v)) return;
    room_[v.index()] = {static_cast<uint32_t>(std::min<uint64_t>(amount, INT32_MAX)), block_};
  }

  struct Room {
    uint32_t amount = 0;
    // Known in the blocks that this one dominates, after the place where it was learned.
    Block from;
  };

  Function& f_;
  Dominators doms_;
  Block block_;
  std::vector<Room> room_;  // by Value::index()
};

}  // namespace

void fold_offsets(Function& f) { OffsetFolder(f).run(); }

}  // namespace uptier::jit
