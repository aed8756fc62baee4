// Runtime unrolling. A small innermost loop that iterates often by the profile becomes groups of
// iterations with one test each (group_test.h), and the original loop for the rest:
//
//                                        ask:          limit = n - 3; branch i < limit, r1(i), loop(i)
//     loop(i):                           r1(i):        round 1; jump r2
//       ...                              ...
//       i' = add i, 1              ->    r4:           round 4; branch i' < limit, r1(i'), rest
//       branch i' < n, loop(i'), out     rest:         branch i' < n, loop(i'), out
//                                        loop(i):      as it was
//
// Each copy keeps its exits from the middle of an iteration. Guards and traps that the group's test
// covers remain only in the original loop, where they fail if necessary.
//
//   rounds     iterations: at least kLeastUnrolledRounds on average, in a loop that was observed often
//              and is not rare
//   size       its instructions, without constants, probes and jumps: copies * size <= kMostRuntimeWhole
//
// Copies keep the probes of their blocks, so counts still add up. An extension of the variable
// becomes the sum of the group's first extension and a constant, so that addresses can fold it.
#include <algorithm>

#include "jit/opt/copy_loop.h"
#include "jit/opt/group_test.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr float kLeastUnrolledRounds = 16;
constexpr float kHotLoopShare = 1.0f / 200;  // of the most frequent block
constexpr uint32_t kMostRuntimeWhole = 100;
constexpr uint32_t kCopies[] = {4, 2};
constexpr size_t kMostRuntimeGrowth = 1'000;  // instructions added to a function

class LongUnroller {
 public:
  LongUnroller(Function& f, const BlockCounts& counts)
      : f_(f), counts_(counts), most_insts_(f.insts.size() + kMostRuntimeGrowth) {}

  bool run() {
    if (counts_.empty()) return false;
    control_ = analyze_control_flow(f_);
    loops_ = find_loops(f_, control_);
    if (loops_.loops.empty()) return false;
    collect();
    frequencies_ = estimate_frequencies(f_, control_, loops_, counts_);
    top_ = *std::ranges::max_element(frequencies_.of);
    for (uint32_t l = 0; l < members_.size() && f_.insts.size() <= most_insts_; ++l) {
      if (!members_[l].empty() && is_long(l)) unroll(l);
    }
    if (redefined_.empty()) return false;
    repair_ssa(f_, redefined_);
    remove_redundant_phis(f_);
    return true;
  }

 private:
  // Collects the blocks of each innermost loop, its header first.
  void collect() {
    members_.resize(loops_.loops.size());
    for (Block b : control_.order()) {
      if (uint32_t l = loops_.loop_of[b.index()]; l != kNoLoop) members_[l].push_back(b);
    }
    for (const LoopNest::Loop& l : loops_.loops) {
      if (l.parent != kNoLoop) members_[l.parent].clear();
    }
  }

  bool is_long(uint32_t l) const {
    Block header = loops_.loops[l].header;
    const Inst* probe = first_block_probe(f_, header);
    if (probe == nullptr || counts_.seen(*probe) < kLeastSeen) return false;
    float entered = 0, here = frequencies_.at(header);
    for (const Predecessor& p : control_.preds[header.index()]) {
      if (loops_.contains(l, p.from)) continue;
      entered += frequencies_.at(p.from) * frequencies_.shares[p.edge];
    }
    return here >= kLeastUnrolledRounds * entered && here >= kHotLoopShare * top_;
  }

  void unroll(uint32_t l) {
    auto counted = find_counted_loop(f_, control_, loops_, l);
    uint32_t size = size_of_copy(f_, members_[l], kMostRuntimeWhole / 2);
    if (!counted || size == 0) return;
    for (uint32_t copies : kCopies) {
      if (copies * size > kMostRuntimeWhole) continue;
      GroupTest test(f_, loops_, l, members_[l], *counted, copies);
      if (test.exists()) make_groups(l, *counted, test, copies);
      return;
    }
  }

  void make_groups(uint32_t l, const CountedLoop& counted, GroupTest& test, uint32_t count) {
    const std::vector<Block>& loop = members_[l];
    const uint32_t back = counted.back - f_.terminator(counted.latch).edges_at;
    LoopCopies copies = copy_loop(f_, loop, count, redefined_);
    for (const auto& round : copies.rounds) drop_answered(loop, round, test.answered());
    if (test.sums_extend()) extend_sums(copies, counted);
    LoopPreheader ask(f_, loop[0], copies.entries);
    test.emit_limit(ask);
    std::vector<Value> begin(f_.params(ask.block()).begin(), f_.params(ask.block()).end());
    Inst enters{.op = Opcode::kBranch};
    enters.args = f_.make_list({{test.emit_enters(ask, begin[counted.index])}});
    Edge groups{copies.rounds[0][0], f_.make_list(begin)}, rest{loop[0], f_.make_list(begin)};
    ask.end(enters, {groups, rest});
    auto latch = static_cast<size_t>(std::ranges::find(loop, counted.latch) - loop.begin());
    for (size_t n = 0; n + 1 < count; ++n) go_on(copies.rounds[n][latch], back);
    end_group(copies.rounds.back()[latch], back, groups.to, counted.index, test);
  }

  // Drops the guards and traps that the group's test covers from a copy of the loop's blocks.
  void drop_answered(const std::vector<Block>& loop, const std::vector<Block>& copy,
                     const std::vector<InstId>& answered) {
    for (size_t n = 0; n < loop.size(); ++n) {
      const auto& was = f_.block(loop[n]).insts;
      auto& insts = f_.block(copy[n]).insts;
      std::vector<InstId> kept;
      for (size_t k = 0; k < was.size(); ++k) {
        if (std::ranges::find(answered, was[k]) == answered.end()) kept.push_back(insts[k]);
      }
      insts = std::move(kept);
    }
  }

  // Extends the variable in the group's first iteration. In later iterations a constant is added to
  // that.
  void extend_sums(const LoopCopies& copies, const CountedLoop& counted) {
    Block first = copies.rounds[0][0];
    Value variable = f_.params(first)[counted.index];
    if (f_.type_of(variable) != Type::kI32) return;
    Inst extend{.op = Opcode::kExtendU, .type = Type::kI64};
    extend.args = f_.make_list({{variable}});
    InstId at_first = f_.append(first, extend, Type::kI64);
    auto& insts = f_.block(first).insts;
    insts.pop_back();
    auto place = std::ranges::find_if(insts, [&](InstId i) { return !is_block_probe(f_.inst(i)); });
    insts.insert(place, at_first);
    for (size_t n = 1; n < copies.rounds.size(); ++n) {
      Value here = f_.params(copies.rounds[n][0])[counted.index];
      for (Block b : copies.rounds[n]) {
        extend_in(b, here, f_.inst(at_first).result, n * *counted.constant_step);
      }
    }
  }

  // Replaces extensions of `variable` in a block by base + distance.
  void extend_in(Block b, Value variable, Value base, uint64_t distance) {
    std::vector<InstId> old = std::move(f_.block(b).insts);
    f_.block(b).insts.clear();
    for (InstId id : old) {
      if (takes_extended(f_.inst(id), variable)) {
        Inst constant{.op = Opcode::kConst, .type = Type::kI64, .imm = distance};
        Value by = f_.inst(f_.append(b, constant, Type::kI64)).result;
        Inst sum{.op = Opcode::kAdd, .type = Type::kI64};
        sum.args = f_.make_list({{base, by}});
        extend(b, id, sum);
      }
      f_.block(b).insts.push_back(id);
    }
  }

  void extend(Block b, InstId id, const Inst& sum) {
    if (is_access(f_.inst(id))) {
      Value index = f_.inst(f_.append(b, sum, Type::kI64)).result;
      f_.args(f_.inst(id)).back() = index;
      return;
    }
    Inst& i = f_.inst(id);
    i.op = sum.op;
    i.args = sum.args;
  }

  static bool is_access(const Inst& i) {
    return info(i.op).shape == Shape::kLoad || info(i.op).shape == Shape::kStore;
  }

  bool takes_extended(const Inst& i, Value variable) const {
    bool extends = i.op == Opcode::kExtendU || i.op == Opcode::kExtendS;
    return (extends || is_access(i)) && f_.args(i).back() == variable;
  }

  // Ends an iteration that is always followed by another in the group.
  void go_on(Block latch, uint32_t back) {
    Inst& t = f_.terminator(latch);
    t.op = Opcode::kJump;
    t.args.size = 0;
    t.edges_at += back;
    t.edge_count = 1;
  }

  // Ends the last iteration of a group: tests for the next group, then makes the test of the loop.
  void end_group(Block latch, uint32_t back, Block first, uint32_t variable,
                 const GroupTest& test) {
    Block rest = f_.add_block();
    f_.layout.push_back(rest);
    Inst asks = f_.terminator(latch);
    f_.block(latch).insts.pop_back();
    ask_in(rest, latch, asks);
    auto passed = f_.list(f_.edges[asks.edges_at + back].args);
    std::vector<Value> next(passed.begin(), passed.end());
    Inst compare{.op = test.op(), .type = f_.type_of(test.limit())};
    compare.args = f_.make_list({{next[variable], test.limit()}});
    Inst branch{.op = Opcode::kBranch};
    branch.args = f_.make_list({{f_.inst(f_.append(latch, compare, Type::kI32)).result}});
    branch.edges_at = static_cast<uint32_t>(f_.edges.size());
    branch.edge_count = 2;
    f_.edges.push_back({first, f_.make_list(next)});
    f_.edges.push_back({rest, {}});
    f_.append(latch, branch, Type::kNone);
  }

  // Ends `rest` the way `from` was ended, and copies the comparison to the branch if there is one.
  void ask_in(Block rest, Block from, Inst branch) {
    Value c = f_.args(branch)[0];
    InstId condition = f_.value(c).inst;
    Shape s = condition.valid() ? info(f_.inst(condition).op).shape : Shape::kConst;
    if (f_.value(c).block == from && (s == Shape::kCompare || s == Shape::kTest)) {
      Inst again = f_.inst(condition);
      again.result = Value::none();
      std::vector<Value> compared(f_.args(again).begin(), f_.args(again).end());
      again.args = f_.make_list(compared);
      branch.args = f_.make_list({{f_.inst(f_.append(rest, again, Type::kI32)).result}});
    }
    f_.append(rest, branch, Type::kNone);
  }

  Function& f_;
  const BlockCounts& counts_;
  const size_t most_insts_;
  ControlFlow control_;
  LoopNest loops_;
  Frequencies frequencies_;
  float top_ = 0;                            // the highest frequency of a block
  std::vector<std::vector<Block>> members_;  // by loop; empty if there is an inner loop
  std::vector<Redefinition> redefined_;
};

}  // namespace

bool runtime_unroll(Function& f, const BlockCounts& counts) {
  return LongUnroller(f, counts).run();
}

}  // namespace uptier::jit
