// Moves a guard that a value is 0 or 1, right before a branch on the same value, to one edge of the
// branch:
//
//     guard y <=u 1                          branch y == 1, yes, ask
//     branch y, yes(a), no(b)      ->      ask:
//                                            guard y == 0
//                                            jump no(b)
//
// So code of hosts that box booleans tests once instead of twice on the more frequent path (by the
// counts; `yes` without counts). If y is x + c, x is compared, which saves the addition as well.
//
// Only pure instructions lie between guard and branch, so the guard leaves with the same values for
// the same deopt target.
#include <algorithm>

#include "jit/analysis/condition.h"
#include "jit/analysis/counted_loop.h"
#include "jit/ir/semantics.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

class GuardSplitter {
 public:
  GuardSplitter(Function& f, const BlockCounts& counts) : f_(f), counts_(counts) {}

  void run() {
    for (size_t n = 0, count = f_.layout.size(); n < count; ++n) visit(f_.layout[n]);
  }

 private:
  void visit(Block b) {
    if (f_.terminator(b).op != Opcode::kBranch) return;
    Value asked = f_.args(f_.terminator(b))[0];
    if (const Inst* wrap = def(asked); wrap != nullptr && wrap->op == Opcode::kWrap) {
      asked = f_.args(*wrap)[0];
    }
    auto& insts = f_.block(b).insts;
    for (size_t n = insts.size() - 1; n-- > 0;) {
      const Inst& i = f_.inst(insts[n]);
      if (i.op == Opcode::kGuard) {
        if (tells_two(i, asked)) split(b, n, asked);
        return;
      }
      if ((info(i.op).effects & ~kCommutes) != kPure) return;
    }
  }

  const Inst* def(Value v) const {
    InstId i = f_.value(v).inst;
    return i.valid() ? &f_.inst(i) : nullptr;
  }

  // Returns whether the guard checks that a value is 0 or 1, and nothing else.
  bool tells_two(const Inst& guard, Value v) const {
    Condition c = condition_of(f_, f_.args(guard)[0], true);
    if (c.a != v || !c.holds) return false;
    return (c.op == Opcode::kLeU && constant_of(f_, c.b) == 1u) ||
           (c.op == Opcode::kLtU && constant_of(f_, c.b) == 2u);
  }

  void split(Block b, size_t place, Value v) {
    auto& insts = f_.block(b).insts;
    InstId guard = insts[place], branch = insts.back();
    auto before = insts.begin() + static_cast<ptrdiff_t>(place);
    auto is_state = [&](InstId i) { return f_.inst(i).op == Opcode::kFrameState; };
    auto state = std::find_if(std::reverse_iterator(before), insts.rend(), is_state);
    std::optional<Inst> stands_for;
    if (state != insts.rend()) stands_for = f_.inst(*state);
    insts.erase(before);
    insts.pop_back();
    const uint32_t edges = f_.inst(branch).edges_at;
    bool one_first = count_of(f_.edges[edges].to) >= count_of(f_.edges[edges + 1].to);
    Block ask = f_.add_block();
    f_.layout.insert(std::ranges::find(f_.layout, b) + 1, ask);
    place_asking(b, branch,
                 one_first ? compare(b, Opcode::kEq, v, 1) : compare(b, Opcode::kNe, v, 0));
    if (stands_for) add_state(ask, *stands_for);
    place_asking(ask, guard, compare(ask, Opcode::kEq, v, one_first ? 0 : 1));
    put_between(ask, edges + (one_first ? 1 : 0));
  }

  // Repeats the frame state that the guard leaves for: each block with such a guard needs its own.
  void add_state(Block b, Inst state) {
    std::vector<Value> values(f_.args(state).begin(), f_.args(state).end());
    state.args = f_.make_list(values);
    f_.append(b, state, Type::kNone);
  }

  // Returns v op k. If v is the sum of x and a constant, compares x.
  Value compare(Block b, Opcode op, Value v, uint64_t k) {
    const Type t = f_.type_of(v);
    const Inst* sum = def(v);
    auto c = sum != nullptr && sum->op == Opcode::kAdd ? constant_of(f_, f_.args(*sum)[1])
                                                       : std::nullopt;
    if (c) v = f_.args(*sum)[0];
    Inst constant{.op = Opcode::kConst, .type = t, .imm = clip(t, k - c.value_or(0))};
    Value with = f_.inst(f_.append(b, constant, t)).result;
    Inst compare{.op = op, .type = t};
    compare.args = f_.make_list({{v, with}});
    return f_.inst(f_.append(b, compare, Type::kI32)).result;
  }

  // Moves a guard or branch to the end of a block, with a new condition. Makes a new list of
  // arguments, because instructions may share lists.
  void place_asking(Block b, InstId id, Value condition) {
    std::vector<Value> args(f_.args(f_.inst(id)).begin(), f_.args(f_.inst(id)).end());
    args[0] = condition;
    f_.inst(id).args = f_.make_list(args);
    f_.block(b).insts.push_back(id);
  }

  // Redirects an edge to a block that jumps to the edge's old target.
  void put_between(Block b, uint32_t edge) {
    Inst jump{.op = Opcode::kJump};
    jump.edges_at = static_cast<uint32_t>(f_.edges.size());
    jump.edge_count = 1;
    f_.edges.push_back(f_.edges[edge]);
    f_.edges[edge] = {b};
    f_.append(b, jump, Type::kNone);
  }

  float count_of(Block b) const {
    const Inst* probe = counts_.empty() ? nullptr : first_block_probe(f_, b);
    return probe != nullptr ? counts_.at(*probe) : 0;
  }

  Function& f_;
  const BlockCounts& counts_;
};

}  // namespace

void split_guards(Function& f, const BlockCounts& counts) { GuardSplitter(f, counts).run(); }

}  // namespace uptier::jit
