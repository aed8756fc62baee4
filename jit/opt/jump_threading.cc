// Jump threading and loop rotation. A block that ends in a branch or switch is copied to the end of
// a block that jumps to it, if
//
//   its outcome is known there     it depends on a value that the jump passes (jump threading)
//   it is the test of a loop       the test at the top of a loop is copied to the bottom: the jump back
//                                  becomes the branch (loop rotation)
//
// A loop keeps one entry: a test at its top is copied to all blocks that jump back, or to the only
// block that enters from outside. Then the block after the test is the header. If that block is
// already the header of an inner loop, an empty block is put between the two. With one header both
// would be one loop, and the number of iterations of the inner one would be unknown.
//
// Copies keep the probes of the block, so counts still add up. Afterwards, values that the block
// defines have several definitions, which repair_ssa joins.
#include <algorithm>
#include <optional>

#include "jit/analysis/control_flow.h"
#include "jit/analysis/loops.h"
#include "jit/ir/semantics.h"
#include "jit/opt/copy_tail.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr uint32_t kMostCopiedInsts =
    12;                                  // of a block that is copied, without probes and constants
constexpr uint32_t kMostLatches = 2;     // the most copies of a loop's test
constexpr uint32_t kMostCopyRounds = 3;  // a copy may be copied in turn
constexpr size_t kMostThreadingGrowth = 4'000;  // instructions added to a function

class TailDuplicator {
 public:
  explicit TailDuplicator(Function& f)
      : f_(f), most_insts_(f.insts.size() + kMostThreadingGrowth) {}

  bool round() {
    control_ = analyze_control_flow(f_);
    loops_ = find_loops(f_, control_);
    touched_.assign(f_.blocks.size(), false);
    redefined_.clear();
    bool any = false;
    for (size_t n = 0, count = f_.layout.size(); n < count; ++n) any |= visit(f_.layout[n]);
    if (!any) return false;
    remove_unreachable(f_);
    repair_ssa(f_, redefined_);
    remove_redundant_phis(f_);
    return true;
  }

 private:
  bool visit(Block tail) {
    if (tail == f_.entry() || touched_[tail.index()] || !may_copy(tail)) return false;
    std::vector<Block> into = is_header(tail) ? around_loop(tail) : where_way_is_known(tail);
    if (!into.empty() && is_header(tail)) part_from_inner_loops(tail);
    for (Block b : into) copy(tail, b);
    if (!into.empty()) touched_[tail.index()] = true;
    return !into.empty();
  }

  bool may_copy_into(Block from, Block tail) const {
    return from != tail && f_.terminator(from).op == Opcode::kJump && !touched_[from.index()] &&
           f_.insts.size() <= most_insts_;
  }

  bool is_header(Block b) const {
    for (const Predecessor& p : control_.preds[b.index()]) {
      if (control_.dominates(b, p.from)) return true;
    }
    return false;
  }

  std::vector<Block> where_way_is_known(Block tail) const {
    std::vector<Block> into;
    for (const Predecessor& p : control_.preds[tail.index()]) {
      bool known =
          may_copy_into(p.from, tail) && way_is_known(tail, f_.list(f_.edges[p.edge].args));
      if (known) into.push_back(p.from);
    }
    return into;
  }

  std::vector<Block> around_loop(Block header) const {
    std::vector<Block> latches, outside;
    bool all = true;
    uint32_t entry = 0;
    for (const Predecessor& p : control_.preds[header.index()]) {
      bool back = control_.dominates(header, p.from);
      (back ? latches : outside).push_back(p.from);
      if (back) all &= may_copy_into(p.from, header);
      if (!back) entry = p.edge;
    }
    if (all && latches.size() <= kMostLatches && is_loop_test(header)) return latches;
    bool enters = outside.size() == 1 && may_copy_into(outside[0], header) &&
                  way_is_known(header, f_.list(f_.edges[entry].args));
    return enters ? outside : std::vector<Block>{};
  }

  void part_from_inner_loops(Block header) {
    uint32_t loop = loops_.loop_of[header.index()];
    const Inst t = f_.terminator(header);
    for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) {
      Block to = f_.edges[e].to;
      if (to != header && loops_.contains(loop, to) && loops_.is_header(to)) put_between(e);
    }
  }

  // Redirects an edge to a new block, which jumps to the edge's old target.
  void put_between(uint32_t edge) {
    Block made = f_.add_block(), to = f_.edges[edge].to;
    f_.layout.push_back(made);
    touched_.resize(f_.blocks.size(), true);
    std::vector<Value> args;
    for (uint32_t k = 0, count = f_.block(to).params.size; k < count; ++k) {
      args.push_back(f_.add_block_param(made, f_.type_of(f_.params(to)[k])));
    }
    f_.edges[edge].to = made;
    Inst jump{.op = Opcode::kJump};
    jump.edges_at = static_cast<uint32_t>(f_.edges.size());
    jump.edge_count = 1;
    f_.edges.push_back({to, f_.make_list(args)});
    f_.append(made, jump, Type::kNone);
  }

  bool may_copy(Block b) const {
    Opcode op = f_.terminator(b).op;
    if (op != Opcode::kBranch && op != Opcode::kSwitch) return false;
    return may_copy_tail(f_, b, kMostCopiedInsts);
  }

  // Returns whether one edge of the branch leaves the loop that the block is the header of.
  bool is_loop_test(Block b) const {
    if (f_.terminator(b).op != Opcode::kBranch) return false;
    uint32_t loop = loops_.loop_of[b.index()];
    auto edges = f_.successors(b);
    return loops_.contains(loop, edges[0].to) != loops_.contains(loop, edges[1].to);
  }

  // Returns whether the outcome of `tail`'s branch or switch is known if its parameters are `args`:
  // one of them is a constant, and so are all other operands of the condition.
  bool way_is_known(Block tail, std::span<const Value> args) const {
    auto params = f_.params(tail);
    std::vector<std::pair<Value, uint64_t>> known;
    for (size_t k = 0; k < params.size(); ++k) {
      if (auto c = constant(args[k])) known.push_back({params[k], *c});
    }
    if (known.empty()) return false;
    auto look = [&](Value v) -> std::optional<uint64_t> {
      for (const auto& [value, bits] : known) {
        if (value == v) return bits;
      }
      return constant(v);
    };
    for (InstId id : f_.block(tail).insts) {
      const Inst& i = f_.inst(id);
      if (!i.result.valid() || !evaluates(i.op) || i.args.size == 0) continue;
      uint64_t operands[3];
      bool all = true;
      for (uint32_t k = 0; k < i.args.size && all; ++k) {
        auto c = look(f_.args(i)[k]);
        all = c.has_value();
        operands[k] = c.value_or(0);
      }
      if (!all) continue;
      Evaluation e = evaluate(i.op, i.type, f_.type_of(f_.args(i)[0]), {operands, i.args.size});
      if (e.trap == TrapCode::kNone) known.push_back({i.result, e.bits});
    }
    return look(f_.args(f_.terminator(tail))[0]).has_value();
  }

  std::optional<uint64_t> constant(Value v) const {
    InstId i = f_.value(v).inst;
    bool is = i.valid() && f_.inst(i).op == Opcode::kConst;
    return is ? std::optional(f_.inst(i).imm) : std::nullopt;
  }

  void copy(Block tail, Block into) {
    touched_[into.index()] = true;
    copy_tail(f_, tail, into, redefined_);
  }

  Function& f_;
  const size_t most_insts_;
  ControlFlow control_;
  LoopNest loops_;
  std::vector<bool> touched_;  // by Block::index(): changed or copied in this round
  std::vector<Redefinition> redefined_;
};

}  // namespace

void jump_threading(Function& f) {
  TailDuplicator d(f);
  for (uint32_t n = 0; n < kMostCopyRounds && d.round(); ++n) {}
}

}  // namespace uptier::jit
