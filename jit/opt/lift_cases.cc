// A switch is a load from a table and a jump that is hard to predict. So
//
//   a case that takes 40 % of its executions (of at least kLeastSeen observed ones; then of the
//   rest) is compared with first
//
//   what has kFew cases or fewer has no table: they are compared with, one after the other
#include <algorithm>

#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr uint32_t kFew = 3;
constexpr uint32_t kMostLifted = 2;
constexpr float kLeastSeen = 32;
constexpr float kLiftedShare = 0.4f;

class CaseLifter {
 public:
  CaseLifter(Function& f, const BlockCounts& counts)
      : f_(f), counts_(counts), preds_(predecessors(f)) {}

  void run() {
    std::vector<Block> blocks = f_.layout;
    for (Block b : blocks) {
      if (f_.terminator(b).op == Opcode::kSwitch) visit(b);
    }
  }

 private:
  struct Case {
    uint32_t number;
    float count;
  };

  void visit(Block b) {
    InstId table = f_.block(b).insts.back();
    std::vector<Case> cases = cases_of(f_.inst(table));
    std::stable_sort(cases.begin(), cases.end(),
                     [](const Case& x, const Case& y) { return x.count > y.count; });
    const Inst* probe = last_block_probe(f_, b);
    float least = probe != nullptr ? kLeastSeen * counts_.sample(*probe) : kLeastSeen;
    float left = probe != nullptr ? counts_.at(*probe) : 0;
    bool few = cases.size() <= kFew;
    for (uint32_t n = 0; n < cases.size(); ++n) {
      bool hot = n < kMostLifted && left >= least && cases[n].count >= kLiftedShare * left;
      if (!few && !hot) return;
      left = std::max(0.0f, left - cases[n].count);
      b = ask(b, table, cases[n].number, left);
    }
    if (few) go_to_default(f_.inst(table));
  }

  // A target that is reached otherwise as well says nothing.
  std::vector<Case> cases_of(const Inst& table) const {
    std::vector<Case> cases;
    for (uint32_t n = 0; n + 1 < table.edge_count; ++n) {
      Block to = f_.edges_of(table)[n].to;
      const Inst* probe = preds_[to.index()].size() == 1 ? first_block_probe(f_, to) : nullptr;
      cases.push_back({n, probe != nullptr ? counts_.at(*probe) : 0});
    }
    return cases;
  }

  Value append(Block b, Inst i, std::initializer_list<Value> args, Type result) {
    i.args = f_.make_list({args.begin(), args.size()});
    return f_.inst(f_.append(b, i, result)).result;
  }

  // Returns the block behind the test, to which the switch has moved; `count` executions get there.
  Block ask(Block b, InstId table, uint32_t number, float count) {
    Block rest = f_.add_block();
    f_.layout.insert(std::find(f_.layout.begin(), f_.layout.end(), b) + 1, rest);
    f_.block(b).insts.pop_back();
    add_probe(b, rest, count);
    Value index = f_.args(f_.inst(table))[0];
    Value k = append(b, {.op = Opcode::kConst, .type = Type::kI32, .imm = number}, {}, Type::kI32);
    Value same = append(b, {.op = Opcode::kEq, .type = Type::kI32}, {index, k}, Type::kI32);
    Inst branch{.op = Opcode::kBranch, .loc = f_.inst(table).loc, .body = f_.inst(table).body};
    branch.edges_at = static_cast<uint32_t>(f_.edges.size());
    branch.edge_count = 2;
    Edge hit = f_.edges_of(f_.inst(table))[number];
    hit.args = f_.make_list(f_.list(hit.args));
    f_.edges.push_back(hit);
    f_.edges.push_back({rest});
    // The table's own way there is never taken.
    f_.edges_of(f_.inst(table))[number] = f_.edges_of(f_.inst(table)).back();
    append(b, branch, {same}, Type::kNone);
    f_.block(rest).insts.push_back(table);
    return rest;
  }

  // The rest of the block is a part of it, with a share of its executions.
  void add_probe(Block b, Block rest, float count) {
    const Inst* last = last_block_probe(f_, b);
    if (last == nullptr) return;
    Inst part = *last;
    float whole = std::max(1.0f, counts_.at(part));
    float before = resumes(part) && probe_tag(part) != 0 ? static_cast<float>(probe_tag(part))
                                                         : static_cast<float>(kWholeShare);
    auto share = std::max(1u, static_cast<uint32_t>(before * std::min(1.0f, count / whole)));
    if (counts_.empty()) share = 0;
    part.flags |= kProbeResumes;
    part.imm = static_cast<uint64_t>(ProbeKind::kBlock) | uint64_t{share} << 32;
    f_.append(rest, part, Type::kNone);
  }

  void go_to_default(Inst& i) {
    i.op = Opcode::kJump;
    i.args.size = 0;
    i.edges_at += i.edge_count - 1;
    i.edge_count = 1;
  }

  Function& f_;
  const BlockCounts& counts_;
  std::vector<std::vector<Predecessor>> preds_;
};

}  // namespace

void lift_cases(Function& f, const BlockCounts& counts) { CaseLifter(f, counts).run(); }

}  // namespace uptier::jit
