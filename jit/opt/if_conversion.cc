// If-conversion. A branch that was observed to go either way, around little work, becomes a
// selection:
//
//     b: ... branch c, t, e           b: ... t's and e's instructions
//     t: x = ...; jump j(x)     ->       v = select c, x, y
//     e: y = ...; jump j(y)              jump j(v)
//
// Both sides must be short (analysis/short_branches.h), and the branch must be mispredicted often.
// If the outcomes of its condition were counted (ir/turns.h), it is converted when
//
//   misses_of(turns) * kRoundsPerMiss >= executions
//
// Otherwise the edge to t must be taken in 20 to 80 % of at least kLeastSeen observed executions:
// outside of that range the branch is predicted well enough. Without counts it stays a branch. The
// blocks t and e, and their sites, disappear.
#include <algorithm>

#include "jit/analysis/control_flow.h"
#include "jit/analysis/short_branches.h"
#include "jit/ir/tally.h"
#include "jit/ir/turns.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

using Turns = std::array<uint64_t, kTurnValues>;

constexpr uint64_t kRoundsPerMiss = 8;
constexpr float kLeastSideShare = 0.2f;

class BranchConverter {
 public:
  BranchConverter(Function& f, const BlockCounts& counts)
      : f_(f), counts_(counts), arrivals_(count_arrivals(f)), gone_(f.blocks.size()) {}

  void run() {
    bool any = false;
    for (Block b : f_.layout) any |= visit(b);
    if (!any) return;
    std::erase_if(f_.layout, [&](Block b) { return gone_[b.index()]; });
    simplify_cfg(f_);
    remove_redundant_phis(f_);
  }

 private:
  bool visit(Block b) {
    if (gone_[b.index()]) return false;
    std::optional<ShortBranch> ways = short_branch(f_, b, arrivals_);
    if (!ways || !is_worth_it(b, *ways)) return false;
    convert(b, ways->yes, ways->no);
    return true;
  }

  bool is_worth_it(Block b, const ShortBranch& ways) const {
    const Inst& branch = f_.terminator(b);
    if (branch.imm == 0) return goes_either_way(b, ways.yes, ways.no);
    Turns n = turns_of(branch);
    return misses_of(n) * kRoundsPerMiss >= n[0] + n[1] + n[2] + n[3];
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
    return known && share >= kLeastSideShare && share <= 1 - kLeastSideShare;
  }

  // `yes` or `no` is `b` itself if that edge leads directly to the join.
  void convert(Block b, Block yes, Block no) {
    // Copies, because appending moves the pool.
    Edge to_yes = yes != b ? f_.successors(yes)[0] : f_.successors(b)[0];
    Edge to_no = no != b ? f_.successors(no)[0] : f_.successors(b)[1];
    Value condition = f_.args(f_.terminator(b))[0];
    const std::array<float, 2> shares = shares_of(b, yes, no);
    f_.block(b).insts.pop_back();
    for (Block way : {yes, no}) {
      if (way != b) move_insts(way, b, shares[way == yes ? 0 : 1]);
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
  }

  // Returns which part of all executions goes each way, as far as is known.
  std::array<float, 2> shares_of(Block b, Block yes, Block no) const {
    float whole = yes != b && no != b ? count_of(yes) + count_of(no) : count_of(b);
    auto share = [&](Block way) {
      if (way == b || whole <= 0) return 0.5f;
      return std::clamp(count_of(way) / whole, 0.0f, 1.0f);
    };
    return {share(yes), share(no)};
  }

  void move_insts(Block from, Block to, float share) {
    for (InstId i : f_.block(from).insts) {
      Inst& inst = f_.inst(i);
      if (inst.op == Opcode::kJump) continue;
      if (is_block_probe(inst)) {
        if (resumes(inst)) continue;
        inst = remnant_of(inst, share);
      } else if (is_remnant(inst)) {
        float part = share * *part_of_block(inst);
        inst.imm =
            static_cast<uint64_t>(part * kWholeShare) << 32 | static_cast<uint32_t>(inst.imm);
      }
      f_.block(to).insts.push_back(i);
      if (inst.result.valid()) f_.value(inst.result).block = to;
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
  // By Block::index(): number of edges to it at the start. Only whether it is 1 matters, and that
  // stays true: a conversion changes the number for its two sides and their target. The sides are
  // gone. The target had at least two edges, and edges from removed blocks still count.
  std::vector<uint32_t> arrivals_;
  std::vector<bool> gone_;  // by Block::index()
};

}  // namespace

void if_conversion(Function& f, const BlockCounts& counts) {
  if (!counts.empty()) BranchConverter(f, counts).run();
}

}  // namespace uptier::jit
