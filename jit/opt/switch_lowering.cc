// Switch lowering. A jump table costs a load and a jump that is hard to predict. So
//
//   - a case with 40 % of the executions (if at least kLeastSeen were observed) is compared with first; then
//     the same is done for the rest
//   - a switch of kFew cases or fewer has no table: it compares with them one after the other
//   - the rest, if it has at most kMostRanges runs of neighbouring cases with one target each, becomes a
//     binary tree of comparisons, split where both sides have about the same number of executions. A case
//     that was compared with first joins its neighbours, because it never reaches the tree
#include <algorithm>
#include <cmath>
#include <span>

#include "jit/opt/growing_layout.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr uint32_t kFew = 3;
constexpr uint32_t kMostLifted = 2;
constexpr size_t kMostRanges = 6;       // in a tree: at most three comparisons deep
constexpr uint32_t kCasesForRange = 3;  // on average; with fewer, a table is used
constexpr float kLiftedShare = 0.4f;

class CaseLifter {
 public:
  CaseLifter(Function& f, const BlockCounts& counts)
      : f_(f), counts_(counts), preds_(f), layout_(f) {}

  void run() {
    std::vector<Block> blocks = f_.layout;
    for (Block b : blocks) {
      if (f_.terminator(b).op == Opcode::kSwitch) visit(b);
    }
    layout_.write();
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
    lifted_.clear();
    for (uint32_t n = 0; n < cases.size(); ++n) {
      bool hot = n < kMostLifted && left >= least && cases[n].count >= kLiftedShare * left;
      if (!few && !hot) break;
      lifted_.push_back(cases[n].number);
      left = std::max(0.0f, left - cases[n].count);
      b = ask(b, table, cases[n].number, left);
    }
    if (few) return go_to_default(f_.inst(table));
    std::vector<Range> ranges = ranges_of(f_.inst(table));
    size_t sparse = ranges.size() * kCasesForRange;
    if (ranges.size() <= kMostRanges && f_.inst(table).edge_count >= sparse) {
      f_.block(b).insts.pop_back();
      tree(b, table, ranges);
    }
  }

  // A run of neighbouring cases with one target.
  struct Range {
    uint32_t first;  // the first case number
    uint32_t edge;   // index among the edges of the switch
    float count;
  };

  // Returns the runs. The default is the last one, from the first number without a case on. Lifted
  // numbers never get here, so they join the run before them. If there are more runs than a tree
  // has room for, returns one too many.
  std::vector<Range> ranges_of(const Inst& table) const {
    std::vector<Range> ranges;
    for (uint32_t n = 0; n < table.edge_count; ++n) {
      const Edge& e = f_.edges_of(table)[n];
      bool again = !ranges.empty() && same(e, f_.edges_of(table)[ranges.back().edge]);
      bool free = !ranges.empty() && std::ranges::find(lifted_, n) != lifted_.end();
      if (!again && !free) ranges.push_back({n, n, count_of(e.to)});
      if (ranges.size() > kMostRanges) return ranges;
    }
    // An edge count that several runs share is divided among them.
    for (size_t r = 0; r < ranges.size(); ++r) {
      auto alike = std::ranges::count_if(ranges, [&](const Range& o) {
        return f_.edges_of(table)[o.edge].to == f_.edges_of(table)[ranges[r].edge].to;
      });
      ranges[r].count /= static_cast<float>(alike);
    }
    return ranges;
  }

  bool same(const Edge& x, const Edge& y) const {
    auto a = f_.list(x.args), b = f_.list(y.args);
    return x.to == y.to && std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  float count_of(Block to) const {
    const Inst* probe = first_block_probe(f_, to);
    return probe != nullptr ? counts_.at(*probe) : 0;
  }

  // Ends `b` with a jump to one of `ranges`. The switch is not in any block any more.
  void tree(Block b, InstId table, std::span<const Range> ranges) {
    if (ranges.size() == 1) {
      Inst jump{.op = Opcode::kJump, .loc = f_.inst(table).loc, .body = f_.inst(table).body};
      jump.edges_at = static_cast<uint32_t>(f_.edges.size());
      jump.edge_count = 1;
      add_edge(f_.edges_of(f_.inst(table))[ranges[0].edge]);
      f_.append(b, jump, Type::kNone);
      return;
    }
    size_t middle = most_even(ranges);
    Block below = half(b, ranges.first(middle)), above = half(b, ranges.subspan(middle));
    Value index = f_.args(f_.inst(table))[0];
    Inst bound{.op = Opcode::kConst, .type = Type::kI32, .imm = ranges[middle].first};
    Value k = append(b, bound, {}, Type::kI32);
    Value less = append(b, {.op = Opcode::kLtU, .type = Type::kI32}, {index, k}, Type::kI32);
    Inst branch{.op = Opcode::kBranch, .loc = f_.inst(table).loc, .body = f_.inst(table).body};
    branch.edges_at = static_cast<uint32_t>(f_.edges.size());
    branch.edge_count = 2;
    f_.edges.push_back({below});
    f_.edges.push_back({above});
    append(b, branch, {less}, Type::kNone);
    tree(below, table, ranges.first(middle));
    tree(above, table, ranges.subspan(middle));
  }

  // Returns where to split: at least one range on either side.
  static size_t most_even(std::span<const Range> ranges) {
    auto sum = [](std::span<const Range> part) {
      float s = 0;
      for (const Range& r : part) s += r.count;
      return s;
    };
    size_t best = ranges.size() / 2;
    float apart = std::abs(sum(ranges.first(best)) - sum(ranges.subspan(best)));
    for (size_t m = 1; m < ranges.size(); ++m) {
      float d = std::abs(sum(ranges.first(m)) - sum(ranges.subspan(m)));
      if (d < apart) {
        best = m;
        apart = d;
      }
    }
    return best;
  }

  // Makes a block after `b` for some of the ranges.
  Block half(Block b, std::span<const Range> ranges) {
    Block part = f_.add_block();
    layout_.put_behind(b, part);
    float count = 0;
    for (const Range& r : ranges) count += r.count;
    add_probe(b, part, count);
    return part;
  }

  void add_edge(Edge e) {
    e.args = f_.make_list(f_.list(e.args));
    f_.edges.push_back(e);
  }

  // A target with other predecessors does not tell how often its case occurs.
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

  // Adds a test for one case. Returns the block after it, which now holds the switch and gets
  // `count` executions.
  Block ask(Block b, InstId table, uint32_t number, float count) {
    Block rest = f_.add_block();
    layout_.put_behind(b, rest);
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
    // The table's own edge for this case is never taken. Arguments are changed in place later, so
    // each edge needs its own list.
    Edge never = f_.edges_of(f_.inst(table)).back();
    never.args = f_.make_list(f_.list(never.args));
    f_.edges_of(f_.inst(table))[number] = never;
    append(b, branch, {same}, Type::kNone);
    f_.block(rest).insts.push_back(table);
    return rest;
  }

  // Adds a probe: the rest of the block belongs to the same site, with a share of its executions.
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
  Predecessors preds_;
  GrowingLayout layout_;
  std::vector<uint32_t> lifted_;  // cases of the switch that are compared with first
};

}  // namespace

void switch_lowering(Function& f, const BlockCounts& counts) { CaseLifter(f, counts).run(); }

}  // namespace uptier::jit
