// Strength reduction. Applies to a loop of one block that computes a value in each iteration from a
// variable that grows by a constant. The value becomes a variable of its own:
//
//     loop(i):                               loop(i, a):                    a: i * 24 + b
//       t = mul i, 24
//       a = add t, b                   ->
//       ... a ...                              ... a ...
//       i' = add i, 1                          i' = add i, 1
//       branch c, loop(i'), out                a' = add a, 24
//                                              branch c, loop(i', a'), out
//
// In arithmetic that wraps around, the two are always equal. The new variable takes a register and
// an addition, so this is done if it saves at least kLeastSaved machine instructions, counted as
//
//     mul         2; by 3, 5 or 9: 1
//     shl         1; by 1 to 3 within a sum: 0 (it is part of a lea)
//     add, sub    1
//     operations with other uses stay, and count 0
//
// and if the values that are live in the loop leave registers free.
#include <algorithm>

#include "jit/analysis/induction.h"
#include "jit/opt/loop_preheader.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

constexpr unsigned kLeastSaved = 2;
// Integers. Of the 13 registers, the others hold short-lived values.
constexpr size_t kMostLive = 9;
constexpr size_t kMostReducedInsts = 200;  // of the loop

class StrengthReducer {
 public:
  explicit StrengthReducer(Function& f) : f_(f) {}

  void run() {
    std::vector<Block> loops;
    for (Block b : f_.layout) {
      if (is_loop(b)) loops.push_back(b);
    }
    if (loops.empty()) return;
    for (Block b : loops) reduce(b);
    if (same_.empty()) return;
    for (Block b : f_.layout) {
      for (InstId i : f_.block(b).insts) rename(f_.inst(i));
    }
  }

 private:
  bool is_loop(Block b) const {
    auto edges = f_.successors(b);
    bool turns = edges.size() == 2 && (edges[0].to == b) != (edges[1].to == b);
    if (!turns || f_.block(b).insts.size() > kMostReducedInsts) return false;
    return std::ranges::any_of(f_.block(b).insts, [&](InstId i) { return multiplies(f_.inst(i)); });
  }

  static bool multiplies(const Inst& i) { return i.op == Opcode::kMul || i.op == Opcode::kShl; }

  void reduce(Block b) {
    loop_ = b;
    const Inst& t = f_.terminator(b);
    uint32_t back = t.edges_at + (f_.edges_of(t)[0].to == b ? 0 : 1);
    Induction grows(f_, b, f_.edges[back]);
    bool any = std::ranges::any_of(f_.block(b).insts, [&](InstId id) {
      const Inst& i = f_.inst(id);
      return multiplies(i) && grows.step(i.result).value_or(0) != 0;
    });
    if (!any) return;
    size_t live = count_uses();
    std::vector<Value> chosen;
    for (size_t n = f_.block(b).insts.size(); n-- > 0 && live + chosen.size() < kMostLive;) {
      const Inst& i = f_.inst(f_.block(b).insts[n]);
      if (is_reducible(i) && !in_chain_[i.result.index()] && saved(i.result, true) >= kLeastSaved &&
          grows.step(i.result).value_or(0) != 0) {
        chosen.push_back(i.result);
        mark_chain(i.result);
      }
    }
    if (!chosen.empty()) rewrite(back, grows, chosen);
  }

  static bool is_reducible(const Inst& i) {
    bool op = i.op == Opcode::kAdd || i.op == Opcode::kSub || i.op == Opcode::kMul ||
              i.op == Opcode::kShl;
    return op && is_int(i.type);
  }

  // Returns the number of integers that the loop keeps alive: values from outside, and its
  // parameters.
  size_t count_uses() {
    uses_.assign(f_.values.size(), 0);
    in_chain_.assign(f_.values.size(), false);
    size_t live = 0;
    auto use = [&](Value v) {
      bool first = uses_[v.index()]++ == 0;
      InstId i = f_.value(v).inst;
      bool constant = i.valid() && f_.inst(i).op == Opcode::kConst;
      bool outside = f_.value(v).block != loop_;
      live += first && outside && !constant && !is_float(f_.type_of(v));
    };
    for (InstId id : f_.block(loop_).insts) {
      const Inst& i = f_.inst(id);
      for (Value v : f_.args(i)) use(v);
      for (const Edge& e : f_.edges_of(i)) {
        for (Value v : f_.list(e.args)) use(v);
      }
    }
    for (Value p : f_.params(loop_)) live += !is_float(f_.type_of(p));
    return live;
  }

  const Inst* def(Value v) const {
    InstId i = f_.value(v).inst;
    return i.valid() && f_.value(v).block == loop_ ? &f_.inst(i) : nullptr;
  }

  std::optional<uint64_t> constant_of(Value v) const {
    InstId i = f_.value(v).inst;
    bool constant = i.valid() && f_.inst(i).op == Opcode::kConst;
    return constant ? std::optional(f_.inst(i).imm) : std::nullopt;
  }

  // Returns the number of instructions saved with a value: it and its operands, as far as they have
  // no other use in the loop.
  unsigned saved(Value v, bool root) const {
    const Inst* i = def(v);
    if (i == nullptr || !is_reducible(*i) || (!root && uses_[v.index()] != 1)) return 0;
    auto args = f_.args(*i);
    auto k = constant_of(args[1]);
    unsigned rest = saved(args[0], false) + saved(args[1], false);
    if (i->op == Opcode::kMul) return rest + (k == 3u || k == 5u || k == 9u ? 1 : 2);
    if (i->op == Opcode::kShl) return rest + (root || !k || *k > 3 ? 1 : 0);
    return rest + 1;
  }

  void mark_chain(Value v) {
    const Inst* i = def(v);
    if (i == nullptr || !is_reducible(*i)) return;
    in_chain_[v.index()] = true;
    for (Value a : f_.args(*i)) {
      if (uses_[a.index()] == 1) mark_chain(a);
    }
  }

  void rewrite(uint32_t back, const Induction& grows, const std::vector<Value>& chosen) {
    Predecessors preds(f_);
    LoopPreheader e(f_, loop_, preds[loop_.index()]);
    std::vector<Value> begin(f_.params(e.block()).begin(), f_.params(e.block()).end());
    std::vector<uint64_t> steps;
    for (Value v : chosen) {
      begin.push_back(e.first(v));
      steps.push_back(*grows.step(v));
    }
    e.end({.op = Opcode::kJump}, {{loop_, f_.make_list(begin)}});
    InstId terminator = f_.block(loop_).insts.back();
    f_.block(loop_).insts.pop_back();
    e.append_to(loop_);
    for (size_t n = 0; n < chosen.size(); ++n) {
      Type t = f_.type_of(chosen[n]);
      Value p = f_.add_block_param(loop_, t);
      Value next = e.emit(Opcode::kAdd, t, {p, e.constant(t, steps[n])});
      f_.push(f_.edges[back].args, next);
      same_.push_back({chosen[n], p});
    }
    f_.block(loop_).insts.push_back(terminator);
  }

  void rename(Inst& i) {
    auto change = [&](std::span<Value> values) {
      for (Value& v : values) {
        for (auto [was, is] : same_) {
          if (v == was) v = is;
        }
      }
    };
    change(f_.args(i));
    for (Edge& e : f_.edges_of(i)) change(f_.list(e.args));
  }

  Function& f_;
  Block loop_;
  std::vector<uint32_t> uses_;  // by Value::index(): in the loop
  std::vector<bool> in_chain_;  // by Value::index(): replaced together with a chosen value
  std::vector<std::pair<Value, Value>> same_;
};

}  // namespace

void strength_reduction(Function& f) { StrengthReducer(f).run(); }

}  // namespace uptier::jit
