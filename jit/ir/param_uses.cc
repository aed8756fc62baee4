#include "jit/ir/param_uses.h"

#include <algorithm>

#include "jit/ir/loop_forest.h"

namespace uptier::jit {
namespace {

// What a use is worth outside of loops, and from where on a parameter is worth a probe: a test of a
// flag or of null alone is not.
constexpr double kSteers = 1;    // a branch, a trap, a stride, a shift
constexpr double kRounds = 5;    // how often a loop goes round
constexpr double kDivides = 10;  // a division, a switch, an indirect call
constexpr double kWorthKnowing = 5;
constexpr uint32_t kMostDepth = 3;

bool is_division(Opcode op) {
  return op == Opcode::kDivS || op == Opcode::kDivU || op == Opcode::kRemS || op == Opcode::kRemU;
}
bool is_shift(Opcode op) {
  return op == Opcode::kShl || op == Opcode::kShrS || op == Opcode::kShrU || op == Opcode::kRotl ||
         op == Opcode::kRotr;
}

class ParamUses {
 public:
  explicit ParamUses(const Function& f)
      : f_(f), forest_(find_loop_forest(f)), source_(f.values.size(), kNone) {
    std::span<const Value> params = f.params(f.entry());
    worth_.resize(params.size());
    for (uint32_t k = 0; k < params.size(); ++k) {
      Type t = f.type_of(params[k]);
      if (t == Type::kI32 || t == Type::kI64 || t == Type::kRef) source_[params[k].index()] = k;
    }
  }

  std::vector<uint32_t> run(size_t most) {
    for (Block b : f_.layout) {
      for (InstId i : f_.block(b).insts) visit(b, f_.inst(i));
    }
    std::vector<uint32_t> chosen;
    for (uint32_t k = 0; k < worth_.size(); ++k) {
      if (worth_[k] >= kWorthKnowing) chosen.push_back(k);
    }
    std::ranges::stable_sort(chosen, std::greater<>{}, [&](uint32_t k) { return worth_[k]; });
    chosen.resize(std::min(chosen.size(), most));
    return chosen;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kConstant = UINT32_MAX - 1;

  double times(Block b) const {
    LoopId l = forest_.innermost[b.index()];
    uint32_t depth = l.valid() ? std::min(forest_.loop(l).depth + 1, kMostDepth) : 0;
    double n = 1;
    while (depth-- != 0) n *= 10;
    return n;
  }

  void use(Value v, double worth) {
    uint32_t k = source_[v.index()];
    if (k < kConstant) worth_[k] += worth;
  }

  // What is computed from one parameter and constants is as known as the parameter.
  void follow(const Inst& i) {
    if (!i.result.valid()) return;
    uint32_t from = kConstant;
    bool pure = (info(i.op).effects & ~kCommutes) == kPure;
    for (Value v : f_.args(i)) {
      uint32_t k = source_[v.index()];
      bool same = k == kConstant || from == kConstant || k == from;
      if (!pure || k == kNone || !same) return;
      if (k != kConstant) from = k;
    }
    if (pure) source_[i.result.index()] = from;
  }

  void visit(Block b, const Inst& i) {
    follow(i);
    auto args = f_.args(i);
    double n = times(b);
    if (is_division(i.op)) use(args[1], kDivides * n);
    if (is_shift(i.op)) use(args[1], kSteers * n);
    // Of a product whose other factor is known as well nothing is left to do in a loop.
    if (i.op == Opcode::kMul) {
      for (Value v : args) use(v, kSteers * n);
    }
    switch (info(i.op).shape) {
      case Shape::kSwitch: use(args[0], kDivides * n); break;
      case Shape::kCallIndirect: use(args[0], kDivides * n); break;
      case Shape::kTrapIf:
      case Shape::kBranch: use(args[0], kSteers * n); break;
      case Shape::kCompare: compared(b, args, n); break;
      default: break;
    }
    for (const Edge& e : f_.edges_of(i)) enter(b, e);
  }

  // A comparison with what varies steers a branch, and in a loop often its end.
  void compared(Block b, std::span<const Value> args, double n) {
    bool in_loop = forest_.innermost[b.index()].valid();
    for (Value v : args) use(v, in_loop ? kRounds * n / 10 : kSteers);
  }

  // A parameter that begins what a loop counts down from.
  void enter(Block from, const Edge& e) {
    LoopId l = forest_.innermost[e.to.index()];
    bool header = l.valid() && forest_.loop(l).header == e.to && !forest_.contains(l, from);
    if (!header) return;
    for (Value v : f_.list(e.args)) use(v, kSteers * times(from));
  }

  const Function& f_;
  LoopForest forest_;
  std::vector<uint32_t> source_;  // by value: the parameter that it comes from, or one of the above
  std::vector<double> worth_;     // by parameter
};

}  // namespace

std::vector<uint32_t> telling_params(const Function& f, size_t most) {
  return ParamUses(f).run(most);
}

void place_param_probes(Function& f) {
  if (!param_sites(f).empty()) return;  // read from text
  // One block is counted by its calls alone, and has nothing that a constant could steer.
  if (f.layout.size() < 2) return;
  std::vector<uint32_t> params = telling_params(f);
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
    bool own = i.op == Opcode::kProbe && (i.flags & kProbeOwn) != 0 && i.args.size == 1;
    if (own) sites.push_back({f.value(f.args(i)[0]).index, i.aux});
  }
  return sites;
}

}  // namespace uptier::jit
