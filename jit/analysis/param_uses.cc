#include "jit/analysis/param_uses.h"

#include <algorithm>

namespace uptier::jit {
namespace {

// The worth of a use outside of loops, and the worth from which a parameter deserves a probe: a
// single test of a flag or of null does not.
constexpr double kSteers = 1;    // a branch, a trap, a stride, a shift
constexpr double kRounds = 5;    // how often a loop repeats
constexpr double kDivides = 10;  // a division, a switch, an indirect call
constexpr double kWorthKnowing = 5;
constexpr uint32_t kMostNest = 3;

bool is_division(Opcode op) {
  return op == Opcode::kDivS || op == Opcode::kDivU || op == Opcode::kRemS || op == Opcode::kRemU;
}
bool is_shift(Opcode op) {
  return op == Opcode::kShl || op == Opcode::kShrS || op == Opcode::kShrU || op == Opcode::kRotl ||
         op == Opcode::kRotr;
}

// Operations that trap on overflow or test for it.
bool is_checked(Opcode op) { return op >= Opcode::kAddOverflows && op <= Opcode::kMulTrap; }

bool can_tell(Type t) { return t == Type::kI32 || t == Type::kI64 || t == Type::kRef; }

class ValueUses {
 public:
  // With `ranges`, counts only the uses that a range may decide.
  ValueUses(const Function& f, const LoopForest& forest, std::span<const Value> values, bool ranges)
      : f_(f),
        ranges_(ranges),
        forest_(forest),
        source_(f.values.size(), kNone),
        uses_(values.size()) {
    for (uint32_t k = 0; k < values.size(); ++k) {
      if (can_tell(f.type_of(values[k]))) source_[values[k].index()] = k;
    }
  }

  std::vector<std::vector<TellingUse>> run() {
    for (Block b : f_.layout) {
      here_ = b;
      times_ = times(b);
      for (InstId i : f_.block(b).insts) visit(f_.inst(i));
    }
    return std::move(uses_);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kConstant = UINT32_MAX - 1;

  double times(Block b) const {
    LoopId l = forest_.innermost[b.index()];
    uint32_t depth = l.valid() ? std::min(forest_.loop(l).depth + 1, kMostNest) : 0;
    double n = 1;
    while (depth-- != 0) n *= 10;
    return n;
  }

  void use(Value v, double worth) {
    uint32_t k = source_[v.index()];
    if (k < kConstant) uses_[k].push_back({here_, worth});
  }

  // A value computed only from one parameter and constants is known if the parameter is.
  void follow(const Inst& i) {
    if (!i.result.valid()) return;
    uint32_t from = kConstant;
    bool pure = (info(i.op).effects & ~kCommutes) == kPure;
    for (Value v : f_.args(i)) {
      uint32_t k = source_[v.index()];
      bool same = k == kConstant || from == kConstant || k == from;
      if (!pure || !same) return;
      if (k != kConstant) from = k;
    }
    if (pure) source_[i.result.index()] = from;
  }

  // A quick exit: most instructions of most bodies do not use the values asked about.
  void visit(const Inst& i) {
    auto args = f_.args(i);
    bool one = false, all = true;
    for (Value v : args) {
      one |= source_[v.index()] < kConstant;
      all &= source_[v.index()] != kNone;
    }
    if (all) follow(i);
    if (one && ranges_) bounded(i, args);
    if (ranges_) return;
    if (one) consider(i, args);
    for (const Edge& e : f_.edges_of(i)) enter(e);
  }

  void consider(const Inst& i, std::span<const Value> args) {
    double n = times_;
    if (is_division(i.op)) use(args[1], kDivides * n);
    if (is_shift(i.op)) use(args[1], kSteers * n);
    // A product whose other factor is also known can leave the loop.
    if (i.op == Opcode::kMul) {
      for (Value v : args) use(v, kSteers * n);
    }
    switch (info(i.op).shape) {
      case Shape::kSwitch: use(args[0], kDivides * n); break;
      case Shape::kCallIndirect: use(args[0], kDivides * n); break;
      case Shape::kTrapIf:
      case Shape::kBranch: use(args[0], kSteers * n); break;
      case Shape::kCompare: compared(args); break;
      default: break;
    }
  }

  void bounded(const Inst& i, std::span<const Value> args) {
    if (info(i.op).shape == Shape::kCompare) compared(args);
    if (!is_checked(i.op)) return;
    for (Value v : args) use(v, kSteers * times_);
  }

  // A comparison with a varying value steers a branch, and in a loop often its end.
  void compared(std::span<const Value> args) {
    bool in_loop = forest_.innermost[here_.index()].valid();
    for (Value v : args) use(v, in_loop ? kRounds * times_ / 10 : kSteers);
  }

  // Counts a parameter that is the initial value of a loop's countdown.
  void enter(const Edge& e) {
    LoopId l = forest_.innermost[e.to.index()];
    bool header = l.valid() && forest_.loop(l).header == e.to && !forest_.contains(l, here_);
    if (!header) return;
    for (Value v : f_.list(e.args)) use(v, kSteers * times_);
  }

  const Function& f_;
  bool ranges_;
  const LoopForest& forest_;
  std::vector<uint32_t>
      source_;  // by value: the index in `values` it comes from, or one of the above
  std::vector<std::vector<TellingUse>> uses_;  // by place in `values`
  Block here_;
  double times_ = 1;  // the weight of a use here
};

double sum(const std::vector<TellingUse>& uses) {
  double worth = 0;
  for (const TellingUse& u : uses) worth += u.worth;
  return worth;
}

}  // namespace

std::vector<uint32_t> telling_params(const Function& f, const LoopForest& forest, size_t most) {
  std::vector<uint32_t> chosen;
  auto params = f.params(f.entry());
  auto is_telling = [&](Value v) { return can_tell(f.type_of(v)); };
  if (std::ranges::none_of(params, is_telling)) return chosen;
  auto uses = ValueUses(f, forest, params, false).run();
  std::vector<double> worth;
  for (uint32_t k = 0; k < uses.size(); ++k) {
    worth.push_back(sum(uses[k]));
    if (worth[k] >= kWorthKnowing) chosen.push_back(k);
  }
  std::ranges::stable_sort(chosen, std::greater<>{}, [&](uint32_t k) { return worth[k]; });
  chosen.resize(std::min(chosen.size(), most));
  return chosen;
}

std::vector<std::vector<TellingUse>> telling_uses(const Function& f,
                                                  std::span<const Value> values) {
  return ValueUses(f, find_loop_forest(f), values, false).run();
}

std::vector<std::vector<TellingUse>> ranged_uses(const Function& f, std::span<const Value> values) {
  return ValueUses(f, find_loop_forest(f), values, true).run();
}

void place_param_probes(Function& f, const LoopForest& forest) {
  if (!param_sites(f).empty()) return;  // they were read from text
  // A function of one block is counted by its calls alone, and a constant could steer nothing in
  // it.
  if (f.layout.size() < 2) return;
  std::vector<uint32_t> params = telling_params(f, forest);
  std::ranges::sort(params);
  auto& insts = f.block(f.entry()).insts;
  auto at = std::ranges::find_if(insts, [&](InstId i) { return is_block_probe(f.inst(i)); });
  if (at == insts.end()) return;
  ptrdiff_t place = at - insts.begin() + 1;
  for (uint32_t k : params) {
    Value v = f.params(f.entry())[k];
    InstId probe = f.add_inst({.op = Opcode::kProbe,
                               .flags = kProbeOwn,
                               .aux = ++f.site_count,
                               .args = f.make_list({{v}}),
                               .imm = static_cast<uint64_t>(ProbeKind::kValue)},
                              Type::kNone);
    auto& list = f.block(f.entry()).insts;
    list.insert(list.begin() + place++, probe);
  }
}

std::vector<ParamSite> param_sites(const Function& f) {
  std::vector<ParamSite> sites;
  for (InstId id : f.block(f.entry()).insts) {
    const Inst& i = f.inst(id);
    bool own = i.op == Opcode::kProbe && i.flags == kProbeOwn && i.args.size == 1;
    if (own) sites.push_back({f.value(f.args(i)[0]).index, i.aux});
  }
  return sites;
}

}  // namespace uptier::jit
