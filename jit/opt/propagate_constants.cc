// Sparse conditional constant propagation. A value is unknown, one constant, or varying, and only
// ever moves that way; blocks and edges count once something is found to take them. So a parameter
// that is the same constant on every edge that is ever taken is that constant, round a loop too.
//
// What is constant afterwards is a `const`; conditions as well, so that fold_branches drops what is
// never taken. What would trap stays.
//
// Source: Wegman and Zadeck, "Constant Propagation with Conditional Branches", 1991.
#include <algorithm>
#include <optional>

#include "jit/ir/dominators.h"
#include "jit/ir/semantics.h"
#include "jit/opt/passes.h"
#include "jit/opt/rewriter.h"

namespace uptier::jit {
namespace {

struct Fact {
  enum Kind : uint8_t { kUnknown, kConstant, kVarying };
  Kind kind = kUnknown;
  uint64_t bits = 0;

  friend bool operator==(const Fact&, const Fact&) = default;
};

class ConstantPropagator {
 public:
  explicit ConstantPropagator(Function& f)
      : f_(f), r_(f), facts_(f.values.size()), reached_(f.blocks.size()) {
    find_users();
  }

  void run() {
    for (Value p : f_.params(f_.entry())) lower(p, {Fact::kVarying});
    reach(f_.entry());
    while (!blocks_.empty() || !values_.empty()) {
      if (!values_.empty()) {
        Value v = values_.back();
        values_.pop_back();
        for (uint32_t u = users_at_[v.index()]; u < users_at_[v.index() + 1]; ++u) visit(users_[u]);
      } else {
        Block b = blocks_.back();
        blocks_.pop_back();
        for (InstId i : f_.block(b).insts) visit(i);
      }
    }
    rewrite();
  }

 private:
  template <typename Use>
  void each_use(Use use) {
    for (Block b : f_.layout) {
      for (InstId i : f_.block(b).insts) {
        for (Value v : f_.args(f_.inst(i))) use(v, i);
        for (const Edge& e : f_.edges_of(f_.inst(i))) {
          for (Value v : f_.list(e.args)) use(v, i);
        }
      }
    }
  }

  void find_users() {
    block_of_.resize(f_.insts.size());
    for (Block b : f_.layout) {
      for (InstId i : f_.block(b).insts) block_of_[i.index()] = b;
    }
    users_at_.assign(f_.values.size() + 1, 0);
    each_use([&](Value v, InstId) { ++users_at_[v.index() + 1]; });
    for (size_t v = 1; v < users_at_.size(); ++v) users_at_[v] += users_at_[v - 1];
    users_.resize(users_at_.back());
    std::vector<uint32_t> next(users_at_.begin(), users_at_.end() - 1);
    each_use([&](Value v, InstId i) { users_[next[v.index()]++] = i; });
  }

  void reach(Block b) {
    if (reached_[b.index()]) return;
    reached_[b.index()] = true;
    blocks_.push_back(b);
  }

  // Moves a value down; never up again.
  void lower(Value v, Fact to) {
    Fact& now = facts_[v.index()];
    if (now.kind == Fact::kVarying || to.kind == Fact::kUnknown || now == to) return;
    now = now.kind == Fact::kUnknown ? to : Fact{Fact::kVarying};
    values_.push_back(v);
  }

  void visit(InstId id) {
    if (!reached_[block_of_[id.index()].index()]) return;
    const Inst& i = f_.inst(id);
    if (i.result.valid()) lower(i.result, result_of(i));
    if (i.edge_count != 0) visit_edges(i);
  }

  Fact result_of(const Inst& i) const {
    if (i.op == Opcode::kConst) return {Fact::kConstant, i.imm};
    if (!evaluates(i.op)) return {Fact::kVarying};
    auto args = f_.args(i);
    if (i.op == Opcode::kSelect) {
      const Fact& c = facts_[args[0].index()];
      if (c.kind == Fact::kConstant) return facts_[args[c.bits != 0 ? 1 : 2].index()];
    }
    uint64_t operands[3];
    bool unknown = false;
    for (uint32_t n = 0; n < args.size(); ++n) {
      const Fact& x = facts_[args[n].index()];
      if (x.kind == Fact::kVarying) return x;
      unknown |= x.kind == Fact::kUnknown;
      operands[n] = x.bits;
    }
    if (unknown) return {};
    Evaluation e = evaluate(i.op, i.type, f_.type_of(args[0]), {operands, args.size()});
    return e.trap == TrapCode::kNone ? Fact{Fact::kConstant, e.bits} : Fact{Fact::kVarying};
  }

  void visit_edges(const Inst& t) {
    auto only = way_of(t);
    for (uint32_t e = 0; e < t.edge_count; ++e) {
      if (!only || *only == e) take(t.edges_at + e);
    }
  }

  // Returns the edge that is taken when it is known; beyond the last one while it may become known.
  std::optional<uint32_t> way_of(const Inst& t) const {
    if (t.op != Opcode::kBranch && t.op != Opcode::kSwitch) return std::nullopt;
    const Fact& c = facts_[f_.args(t)[0].index()];
    if (c.kind == Fact::kVarying) return std::nullopt;
    if (c.kind == Fact::kUnknown) return t.edge_count;
    if (t.op == Opcode::kBranch) return c.bits != 0 ? 0 : 1;
    return static_cast<uint32_t>(std::min<uint64_t>(c.bits, t.edge_count - 1));
  }

  void take(uint32_t edge) {
    const Edge& e = f_.edges[edge];
    auto params = f_.params(e.to);
    auto args = f_.list(e.args);
    for (size_t n = 0; n < params.size(); ++n) lower(params[n], facts_[args[n].index()]);
    reach(e.to);
  }

  // ---- The result -------------------------------------------------------------------------------

  void rewrite() {
    std::vector<Block> order = compute_dominators(f_).order;
    for (Block b : order) {
      if (reached_[b.index()]) name_params(b);
    }
    r_.run(order, [&](InstId i) { return rewrite(i); });
  }

  // What a parameter always is becomes a constant of the entry, which is before every use.
  void name_params(Block b) {
    for (size_t n = 0, count = f_.params(b).size(); n < count; ++n) {
      Value p = f_.params(b)[n];
      const Fact known = facts_[p.index()];
      if (known.kind != Fact::kConstant) continue;
      Inst c{.op = Opcode::kConst, .type = f_.type_of(p), .imm = known.bits};
      InstId id = f_.add_inst(c, c.type);
      Value named = f_.inst(id).result;
      f_.value(named).block = f_.entry();
      auto& insts = f_.block(f_.entry()).insts;
      insts.insert(insts.end() - 1, id);
      r_.replace(p, named);
    }
  }

  // Returns whether the instruction stays.
  bool rewrite(InstId id) {
    const Inst& i = f_.inst(id);
    if (i.op == Opcode::kTrapIf) return r_.constant_of(f_.args(i)[0]) != 0u;
    if (!i.result.valid() || i.op == Opcode::kConst || i.result.index() >= facts_.size())
      return true;
    const Fact& known = facts_[i.result.index()];
    if (known.kind == Fact::kConstant) {
      r_.become_constant(id, known.bits);
    } else if (i.op == Opcode::kSelect) {
      auto args = f_.args(i);
      auto c = r_.constant_of(args[0]);
      if (!c && args[1] != args[2]) return true;
      r_.replace(i.result, c && *c == 0 ? args[2] : args[1]);
      return false;
    }
    return true;
  }

  Function& f_;
  Rewriter r_;
  std::vector<Fact> facts_;         // by Value::index()
  std::vector<bool> reached_;       // by Block::index()
  std::vector<Block> block_of_;     // by InstId
  std::vector<uint32_t> users_at_;  // by Value::index(): first of its users
  std::vector<InstId> users_;
  std::vector<Block> blocks_;  // reached and not looked at
  std::vector<Value> values_;  // lowered since their users were looked at
};

}  // namespace

void propagate_constants(Function& f) { ConstantPropagator(f).run(); }

}  // namespace uptier::jit
