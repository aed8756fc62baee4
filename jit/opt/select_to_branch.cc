#include "jit/opt/select_to_branch.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "jit/analysis/block_counts.h"
#include "jit/analysis/one_of_two.h"
#include "jit/ir/turns.h"
#include "jit/opt/copy_tail.h"
#include "jit/opt/passes.h"
#include "jit/opt/splice.h"

namespace uptier::jit {
namespace {

constexpr uint64_t kRoundsWithoutMiss = 50;
constexpr uint32_t kMostCopiedRest = 16;

using Turns = std::array<uint64_t, kTurnValues>;

bool is_measured(const Inst& i) { return i.imm != 0; }

bool is_predictable(const Turns& n) {
  return misses_of(n) * kRoundsWithoutMiss <= n[0] + n[1] + n[2] + n[3];
}

// Returns the share of executions in which the condition of a selection is set.
double share_of(const Inst& i) {
  if (!is_measured(i)) return 0.5;
  Turns n = turns_of(i);
  auto set = static_cast<double>(n[1] + n[3]);
  return set / (static_cast<double>(n[0] + n[2]) + set);
}

class SelectSplitter {
 public:
  explicit SelectSplitter(Function& f) : f_(f), one_of_two_(one_of_two(f)) {}

  void run() {
    std::vector<Block> blocks = f_.layout;
    for (Block b : blocks) {
      for (size_t n = 0; n < f_.block(b).insts.size();) {
        const Inst& i = f_.inst(f_.block(b).insts[n++]);
        if (i.op != Opcode::kSelect) continue;
        bool stores = one_of_two_.contains(i.result.index());
        if (!stores && !(is_measured(i) && is_predictable(turns_of(i)))) continue;
        if (parts_guard(b, n - 1)) continue;
        b = split(b, n - 1, share_of(i), stores);
        n = 0;
      }
    }
    if (!tails_.empty()) copy_tails();
  }

 private:
  // Returns the block of the instructions after it.
  Block split(Block b, size_t position, double yes, bool stores) {
    Value condition = f_.args(f_.inst(f_.block(b).insts[position]))[0];
    std::vector<InstId> group = together(b, position, condition);
    Block rest = split_block(f_, b, position);
    std::vector<Value> x, y;
    for (InstId id : group) {
      const Inst& i = f_.inst(id);
      x.push_back(f_.args(i)[1]);
      y.push_back(f_.args(i)[2]);
      become_param(rest, i.result);
    }
    auto next = group.begin();
    std::erase_if(f_.block(rest).insts, [&](InstId i) {
      bool goes = next != group.end() && *next == i;
      next += goes;
      return goes;
    });
    Block t = arm(b, rest, x, yes), e = arm(b, rest, y, 1 - yes);
    Inst branch{.op = Opcode::kBranch, .args = f_.make_list({{condition}})};
    branch.edges_at = static_cast<uint32_t>(f_.edges.size());
    branch.edge_count = 2;
    f_.edges.push_back({t, {}});
    f_.edges.push_back({e, {}});
    f_.append(b, branch, Type::kNone);
    if (stores) tails_.push_back({t, e, rest});
    return rest;
  }

  // Returns whether a split would separate a guard from its frame state: a guard without a deopt
  // target needs the state before it in its block.
  bool parts_guard(Block b, size_t position) const {
    const auto& insts = f_.block(b).insts;
    for (size_t n = position; n < insts.size(); ++n) {
      const Inst& i = f_.inst(insts[n]);
      if (i.op == Opcode::kFrameState) return false;
      if (i.op == Opcode::kGuard && i.imm == 0) return true;
    }
    return false;
  }

  void copy_tails() {
    std::vector<Redefinition> redefined;
    for (const Tail& t : tails_) {
      if (!may_copy_tail(f_, t.rest, kMostCopiedRest)) continue;
      // The arms have probes with the shares of their executions.
      auto& insts = f_.block(t.rest).insts;
      if (is_block_probe(f_.inst(insts.front()))) insts.erase(insts.begin());
      copy_tail(f_, t.rest, t.yes, redefined);
      copy_tail(f_, t.rest, t.no, redefined);
    }
    if (redefined.empty()) return;
    remove_unreachable(f_);
    repair_ssa(f_, redefined);
    remove_redundant_phis(f_);
  }

  // Returns the selection at `position` and later ones on the same condition whose operands are
  // available there.
  std::vector<InstId> together(Block b, size_t position, Value condition) const {
    const auto& insts = f_.block(b).insts;
    std::vector<InstId> group;
    std::unordered_set<uint32_t> later;
    for (size_t n = position; n < insts.size(); ++n) {
      const Inst& i = f_.inst(insts[n]);
      bool same = i.op == Opcode::kSelect && f_.args(i)[0] == condition;
      bool known = same && std::ranges::none_of(f_.args(i),
                                                [&](Value v) { return later.contains(v.index()); });
      if (known) group.push_back(insts[n]);
      if (i.result.valid()) later.insert(i.result.index());
    }
    return group;
  }

  void become_param(Block b, Value v) {
    Type t = f_.type_of(v);
    uint32_t index = f_.block(b).params.size;
    f_.push(f_.block(b).params, v);
    f_.value(v) = {t, InstId::none(), b, index};
  }

  // Makes a block between `b` and the rest, for `share` of b's executions.
  Block arm(Block b, Block rest, const std::vector<Value>& args, double share) {
    Block way = f_.add_block();
    if (const Inst* probe = last_block_probe(f_, b)) {
      Inst part = *probe;
      uint32_t whole = resumes(part) && probe_tag(part) != 0 ? probe_tag(part) : kWholeShare;
      auto tag = static_cast<uint32_t>(share * whole);
      part.flags = kProbeResumes;
      part.imm = uint64_t{std::max(tag, 1u)} << 32 | static_cast<uint32_t>(part.imm);
      f_.append(way, part, Type::kNone);
    }
    Inst jump{.op = Opcode::kJump};
    jump.edges_at = static_cast<uint32_t>(f_.edges.size());
    jump.edge_count = 1;
    f_.edges.push_back({rest, f_.make_list(args)});
    f_.append(way, jump, Type::kNone);
    f_.layout.insert(std::ranges::find(f_.layout, rest), way);
    return way;
  }

  struct Tail {
    Block yes, no, rest;
  };

  Function& f_;
  std::unordered_set<uint32_t> one_of_two_;
  std::vector<Tail> tails_;
};

}  // namespace

void select_to_branch(Function& f) {
  bool any = std::ranges::any_of(f.layout, [&](Block b) {
    const auto& insts = f.block(b).insts;
    return std::ranges::any_of(insts, [&](InstId i) { return f.inst(i).op == Opcode::kSelect; });
  });
  if (any) SelectSplitter(f).run();
}

}  // namespace uptier::jit
