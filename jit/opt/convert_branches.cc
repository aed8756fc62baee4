// A branch that is measured to go either way, around little work, becomes a selection:
//
//     b: ... branch c, t, e           b: ... t's and e's instructions
//     t: x = ...; jump j(x)     ->       v = select c, x, y
//     e: y = ...; jump j(y)              jump j(v)
//
// when t (and e; one of the two may be j itself) does nothing but at most kMostInsts cheap
// operations, j gets at most kMostSelects different integers, and the way to t is taken in 20 to
// 80 % of at least kLeastSeen executions that were observed. What is taken less often or more is
// predicted well enough; what is not known stays a branch. The blocks t and e, and their sites, are
// gone.
#include <algorithm>

#include "jit/opt/control_flow.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr uint32_t kMostInsts = 3;  // of each way, without constants
constexpr uint32_t kMostSelects = 2;
constexpr float kLeastSeen = 32;
constexpr float kLeastShare = 0.2f;

class BranchConverter {
 public:
  BranchConverter(Function& f, const BlockCounts& counts)
      : f_(f), counts_(counts), arrivals_(f.blocks.size()), gone_(f.blocks.size()) {
    for (Block b : f.layout) {
      for (const Edge& e : f.successors(b)) ++arrivals_[e.to.index()];
    }
  }

  void run() {
    bool any = false;
    for (Block b : f_.layout) any |= visit(b);
    if (!any) return;
    std::erase_if(f_.layout, [&](Block b) { return gone_[b.index()]; });
    fold_branches(f_);
    prune_params(f_);
  }

 private:
  bool visit(Block b) {
    if (gone_[b.index()] || f_.terminator(b).op != Opcode::kBranch) return false;
    Block yes = f_.successors(b)[0].to, no = f_.successors(b)[1].to;
    bool short_yes = is_short(yes, b), short_no = is_short(no, b);
    if (short_yes && short_no && target(yes) == target(no)) return convert(b, yes, no);
    if (short_yes && target(yes) == no) return convert(b, yes, b);
    if (short_no && target(no) == yes) return convert(b, b, no);
    return false;
  }

  Block target(Block way) const { return f_.successors(way)[0].to; }

  bool is_short(Block way, Block from) const {
    if (way == from || arrivals_[way.index()] != 1 || gone_[way.index()]) return false;
    // A block that has lost its other predecessors may still have parameters.
    if (f_.block(way).params.size != 0) return false;
    if (f_.terminator(way).op != Opcode::kJump || target(way) == way) return false;
    uint32_t size = 0;
    for (InstId id : f_.block(way).insts) {
      const Inst& i = f_.inst(id);
      if (i.op == Opcode::kConst || i.op == Opcode::kJump || is_block_probe(i)) continue;
      if (!is_cheap(i) || ++size > kMostInsts) return false;
    }
    return true;
  }

  static bool is_cheap(const Inst& i) {
    bool pure = (info(i.op).effects & ~kCommutes) == 0;
    bool slow = i.op == Opcode::kMul || i.op == Opcode::kMulHighS || i.op == Opcode::kMulHighU;
    return pure && is_int(i.type) && i.op <= Opcode::kGeU && !slow;
  }

  float count_of(Block b) const {
    const Inst* probe = last_block_probe(f_, b);
    return probe != nullptr ? counts_.at(*probe) : 0;
  }

  bool goes_either_way(Block b, Block yes, Block no) const {
    float whole = yes != b && no != b ? count_of(yes) + count_of(no) : count_of(b);
    float share = whole > 0 ? count_of(yes != b ? yes : no) / whole : 0;
    const Inst* probe = last_block_probe(f_, yes);
    bool known = probe != nullptr && whole >= kLeastSeen * counts_.sample(*probe);
    return known && share >= kLeastShare && share <= 1 - kLeastShare;
  }

  // `yes` or `no` is `b` itself when that way has no block.
  bool convert(Block b, Block yes, Block no) {
    if (!goes_either_way(b, yes, no)) return false;
    // Copies: what is added moves the pool.
    Edge to_yes = yes != b ? f_.successors(yes)[0] : f_.successors(b)[0];
    Edge to_no = no != b ? f_.successors(no)[0] : f_.successors(b)[1];
    uint32_t selects = 0;
    for (uint32_t n = 0; n < to_yes.args.size; ++n) {
      Value x = f_.list(to_yes.args)[n], y = f_.list(to_no.args)[n];
      if (x == y) continue;
      if (is_float(f_.type_of(x)) || ++selects > kMostSelects) return false;
    }
    Value condition = f_.args(f_.terminator(b))[0];
    f_.block(b).insts.pop_back();
    for (Block way : {yes, no}) {
      if (way != b) move_insts(way, b);
    }
    std::vector<Value> args;
    for (uint32_t n = 0; n < to_yes.args.size; ++n) {
      Value x = f_.list(to_yes.args)[n], y = f_.list(to_no.args)[n];
      args.push_back(x == y ? x : select(b, condition, x, y));
    }
    Inst jump{.op = Opcode::kJump};
    jump.edges_at = static_cast<uint32_t>(f_.edges.size());
    jump.edge_count = 1;
    f_.edges.push_back({to_yes.to, f_.make_list(args)});
    f_.append(b, jump, Type::kNone);
    return true;
  }

  void move_insts(Block from, Block to) {
    for (InstId i : f_.block(from).insts) {
      const Inst& inst = f_.inst(i);
      if (is_block_probe(inst) || inst.op == Opcode::kJump) continue;
      f_.block(to).insts.push_back(i);
      f_.value(inst.result).block = to;
    }
    gone_[from.index()] = true;
  }

  Value select(Block b, Value condition, Value x, Value y) {
    Inst i{.op = Opcode::kSelect, .type = f_.type_of(x)};
    i.args = f_.make_list({{condition, x, y}});
    return f_.inst(f_.append(b, i, i.type)).result;
  }

  Function& f_;
  const BlockCounts& counts_;
  // By Block::index(): edges to it at the beginning. What is asked is whether there is but one, and
  // that stays so: a conversion changes this of its two ways and of their target. The ways are gone;
  // the target had two edges or more, which count still where they come from what is gone.
  std::vector<uint32_t> arrivals_;
  std::vector<bool> gone_;  // by Block::index()
};

}  // namespace

void convert_branches(Function& f, const BlockCounts& counts) {
  if (!counts.empty()) BranchConverter(f, counts).run();
}

}  // namespace uptier::jit
