// Loop-invariant code motion. An operation in a loop whose operands come from outside is computed
// once, before the loop:
//
//     p:                               p:
//       jump loop(x)                     t = fdiv a, b
//     loop(i):                    ->     jump loop(x)
//       t = fdiv a, b                  loop(i):
//       ... t ...                        ... t ...
//
// A hoisted value occupies a register through the whole loop, or a word of the frame that each
// iteration reads. So only operations that are slower than that read are hoisted, together with
// their operands: multiplications, and operations and conversions of floats. In loops with calls,
// across which no float register survives, only divisions and similarly slow ones. Only blocks that
// every iteration passes are considered: an operation that few iterations need would cost time at
// each entry.
//
// Inner loops come first: an operation hoisted from one is part of the loop around it, and may be
// hoisted again.
#include <algorithm>

#include "jit/analysis/control_flow.h"
#include "jit/analysis/loops.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr unsigned kLeastCost = 3;  // cycles: reading a word of the frame takes about as long
constexpr unsigned kLeastCostWithCalls = 10;  // in a loop with calls
constexpr size_t kMostLiveOutside = 9;        // values of one class from outside that a loop uses
// Instructions; longer loops are assumed to have no registers free.
constexpr size_t kMostCounted = 2000;
// Operations that the costly one depends on and that move with it.
constexpr unsigned kMostHoistedDepth = 4;

// Returns the latency in cycles of an operation that may be worth a register; 0 for all others.
unsigned cost_of(const Inst& i) {
  switch (i.op) {
    case Opcode::kMul:
    case Opcode::kMulHighS:
    case Opcode::kMulHighU: return 3;
    case Opcode::kFAdd:
    case Opcode::kFSub:
    case Opcode::kFMul: return 4;
    case Opcode::kFMin:
    case Opcode::kFMax:
    case Opcode::kConvertS:
    case Opcode::kConvertU:
    case Opcode::kPromote:
    case Opcode::kDemote: return 6;
    case Opcode::kFCeil:
    case Opcode::kFFloor:
    case Opcode::kFTrunc:
    case Opcode::kFNearest: return 8;
    case Opcode::kTruncSatS:
    case Opcode::kTruncSatU: return 10;
    case Opcode::kFDiv:
    case Opcode::kFSqrt: return 14;
    default: return 0;
  }
}

bool is_pure(const Inst& i) {
  return i.result.valid() &&
         (info(i.op).effects & (kReads | kWrites | kPinned | kCanTrap | kEndsBlock)) == 0;
}

class Hoister {
 public:
  explicit Hoister(Function& f) : f_(f) {}

  void run() {
    if (!any_costly()) return;
    control_ = analyze_control_flow(f_);
    nest_ = find_loops(f_, control_);
    blocks_.resize(nest_.loops.size());
    inner_.resize(nest_.loops.size());
    calls_.resize(nest_.loops.size());
    for (Block b : control_.order()) {
      uint32_t l = nest_.loop_of[b.index()];
      if (l == kNoLoop) continue;
      blocks_[l].push_back(b);
      calls_[l] = calls_[l] || has_calls(b);
    }
    for (uint32_t l = 0; l < nest_.loops.size(); ++l) {
      hoist_from(l);
      uint32_t around = nest_.loops[l].parent;
      if (around == kNoLoop) continue;
      inner_[around].push_back(l);
      calls_[around] = calls_[around] || calls_[l];
    }
  }

 private:
  bool any_costly() const {
    return std::ranges::any_of(f_.layout, [&](Block b) {
      return std::ranges::any_of(f_.block(b).insts,
                                 [&](InstId i) { return cost_of(f_.inst(i)) != 0; });
    });
  }

  bool has_calls(Block b) const {
    return std::ranges::any_of(f_.block(b).insts, [&](InstId i) {
      Shape s = info(f_.inst(i).op).shape;
      return s == Shape::kCall || s == Shape::kCallIndirect || s == Shape::kCallHost;
    });
  }

  void hoist_from(uint32_t l) {
    loop_ = l;
    Block before = block_before(nest_.loops[l].header);
    if (!before.valid()) return;
    counted_ = false;
    leaves_.clear();
    for (Block b : blocks_[l]) {
      if (!passed_in_each_round(b)) continue;
      for (InstId i : f_.block(b).insts) {
        if (is_worth_it(f_.inst(i)) && can_leave(i, 0)) leave(i);
      }
    }
    if (!leaves_.empty()) move_to(before);
  }

  // Returns the only block from which a loop is entered, or none.
  Block block_before(Block header) const {
    Block before = Block::none();
    for (const Predecessor& p : control_.preds[header.index()]) {
      if (control_.dominates(header, p.from)) continue;
      if (before.valid()) return Block::none();
      before = p.from;
    }
    return before;
  }

  bool passed_in_each_round(Block b) const {
    Block header = nest_.loops[loop_].header;
    auto passes = [&](const Predecessor& p) {
      return !control_.dominates(header, p.from) || control_.dominates(b, p.from);
    };
    return std::ranges::all_of(control_.preds[header.index()], passes);
  }

  bool is_inside(Value v) const { return !left(v) && nest_.contains(loop_, f_.value(v).block); }
  bool left(Value v) const { return std::ranges::find(leaves_, f_.value(v).inst) != leaves_.end(); }

  bool is_worth_it(const Inst& i) {
    unsigned cost = cost_of(i);
    if (cost < (calls_[loop_] ? kLeastCostWithCalls : kLeastCost)) return false;
    if (!counted_) count_live();
    return live_[is_float(f_.type_of(i.result))] < kMostLiveOutside;
  }

  // Returns whether an operation and its operands, recursively, can be computed outside of the
  // loop.
  bool can_leave(InstId id, unsigned depth) const {
    const Inst& i = f_.inst(id);
    if (!is_pure(i) || depth > kMostHoistedDepth) return false;
    return std::ranges::all_of(f_.args(i), [&](Value v) {
      if (!is_inside(v)) return true;
      InstId from = f_.value(v).inst;
      return from.valid() && can_leave(from, depth + 1);
    });
  }

  // Marks an operation to be hoisted, after its operands.
  void leave(InstId id) {
    if (std::ranges::find(leaves_, id) != leaves_.end()) return;
    for (Value v : f_.args(f_.inst(id))) {
      if (is_inside(v)) leave(f_.value(v).inst);
    }
    leaves_.push_back(id);
    const Inst& i = f_.inst(id);
    if (i.op != Opcode::kConst) ++live_[is_float(f_.type_of(i.result))];
  }

  // Counts by class the values from outside that the loop uses, and its own variables. Constants
  // need no register.
  void count_live() {
    counted_ = true;
    live_[0] = live_[1] = 0;
    std::vector<Value> used;
    size_t insts = 0;
    collect_uses(loop_, used, insts);
    if (insts > kMostCounted) {
      live_[0] = live_[1] = kMostLiveOutside;
      return;
    }
    std::ranges::sort(used, [](Value a, Value b) { return a.index() < b.index(); });
    used.erase(std::ranges::unique(used).begin(), used.end());
    for (Value v : used) {
      InstId i = f_.value(v).inst;
      bool constant = i.valid() && f_.inst(i).op == Opcode::kConst;
      if (!constant && !is_inside(v)) ++live_[is_float(f_.type_of(v))];
    }
    for (Value p : f_.params(nest_.loops[loop_].header)) ++live_[is_float(f_.type_of(p))];
  }

  void collect_uses(uint32_t l, std::vector<Value>& used, size_t& insts) const {
    for (Block b : blocks_[l]) {
      insts += f_.block(b).insts.size();
      if (insts > kMostCounted) return;
      for (InstId id : f_.block(b).insts) {
        const Inst& i = f_.inst(id);
        for (Value v : f_.args(i)) used.push_back(v);
        for (const Edge& e : f_.edges_of(i)) {
          for (Value v : f_.list(e.args)) used.push_back(v);
        }
      }
    }
    for (uint32_t inner : inner_[l]) collect_uses(inner, used, insts);
  }

  void move_to(Block before) {
    for (InstId i : leaves_) {
      Block from = f_.value(f_.inst(i).result).block;
      std::erase(f_.block(from).insts, i);
      f_.value(f_.inst(i).result).block = before;
    }
    auto& insts = f_.block(before).insts;
    insts.insert(insts.end() - 1, leaves_.begin(), leaves_.end());
  }

  Function& f_;
  ControlFlow control_;
  LoopNest nest_;
  // By loop: its blocks except those of inner loops, in reverse postorder.
  std::vector<std::vector<Block>> blocks_;
  std::vector<std::vector<uint32_t>> inner_;  // by loop: the loops directly inside it
  std::vector<bool> calls_;                   // by loop: whether it has calls
  uint32_t loop_ = kNoLoop;                   // the loop being examined
  std::vector<InstId> leaves_;                // the instructions to hoist, operands first
  bool counted_ = false;
  size_t live_[2] = {};  // by class: integers and references, floats
};

}  // namespace

void licm(Function& f) { Hoister(f).run(); }

}  // namespace uptier::jit
