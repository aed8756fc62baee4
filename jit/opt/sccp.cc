// Sparse conditional constant propagation. A value is unknown, one constant, or varying, and only
// changes in this order. Blocks and edges count only once they are found to be executable. So a
// parameter is constant if all executable edges pass the same constant, also around a loop.
//
// Blocks are visited in reverse postorder, repeatedly while a back edge has changed a parameter:
// once without loops, mostly twice with them. After kMostPasses all parameters are assumed to vary.
//
// Constant values become `const`, and so do conditions, so that simplify_cfg drops unreachable
// code. Instructions that always trap stay.
//
// Source: Wegman and Zadeck, "Constant Propagation with Conditional Branches", 1991.
#include <algorithm>
#include <optional>

#include "jit/ir/semantics.h"
#include "jit/opt/passes.h"
#include "jit/opt/rewriter.h"

namespace uptier::jit {
namespace {

constexpr uint32_t kMostPasses = 8;

struct LatticeFact {
  enum Kind : uint8_t { kUnknown, kConstant, kVarying };
  Kind kind = kUnknown;
  uint64_t bits = 0;

  friend bool operator==(const LatticeFact&, const LatticeFact&) = default;
};

class ConstantPropagator {
 public:
  explicit ConstantPropagator(Function& f)
      : f_(f), r_(f), facts_(f.values.size()), reached_(f.blocks.size()) {}

  void run() {
    order_blocks();
    for (Value p : f_.params(f_.entry())) lower(p, {LatticeFact::kVarying});
    reached_[f_.entry().index()] = true;
    again_ = true;
    for (uint32_t pass = 0; again_; ++pass) {
      again_ = false;
      if (pass == kMostPasses) give_up_params();
      for (here_ = 0; here_ < order_.size(); ++here_) visit(order_[here_]);
    }
    if (found_anything()) rewrite();
  }

 private:
  void order_blocks() {
    std::vector<std::pair<Block, uint32_t>> stack{{f_.entry(), 0}};
    position_.assign(f_.blocks.size(), 0);
    std::vector<bool> seen(f_.blocks.size());
    seen[f_.entry().index()] = true;
    while (!stack.empty()) {
      auto& [b, next] = stack.back();
      auto edges = f_.successors(b);
      if (next == edges.size()) {
        order_.push_back(b);
        stack.pop_back();
      } else if (Block to = edges[next++].to; !seen[to.index()]) {
        seen[to.index()] = true;
        stack.push_back({to, 0});
      }
    }
    std::reverse(order_.begin(), order_.end());
    for (uint32_t n = 0; n < order_.size(); ++n) position_[order_[n].index()] = n;
  }

  void give_up_params() {
    for (Block b : order_) {
      for (Value p : f_.params(b)) lower(p, {LatticeFact::kVarying});
    }
  }

  // Lowers a value in the lattice; returns whether it changed.
  bool lower(Value v, LatticeFact to) {
    LatticeFact& now = facts_[v.index()];
    if (now.kind == LatticeFact::kVarying || to.kind == LatticeFact::kUnknown || now == to)
      return false;
    now = now.kind == LatticeFact::kUnknown ? to : LatticeFact{LatticeFact::kVarying};
    return true;
  }

  void visit(Block b) {
    if (!reached_[b.index()]) return;
    for (InstId id : f_.block(b).insts) {
      const Inst& i = f_.inst(id);
      if (i.result.valid()) lower(i.result, result_of(i));
      if (i.edge_count != 0) visit_edges(i);
    }
  }

  LatticeFact result_of(const Inst& i) const {
    if (i.op == Opcode::kConst) return {LatticeFact::kConstant, i.imm};
    if (!evaluates(i.op)) return {LatticeFact::kVarying};
    auto args = f_.args(i);
    if (i.op == Opcode::kSelect) {
      const LatticeFact& c = facts_[args[0].index()];
      if (c.kind == LatticeFact::kConstant) return facts_[args[c.bits != 0 ? 1 : 2].index()];
    }
    uint64_t operands[3];
    bool unknown = false;
    for (uint32_t n = 0; n < args.size(); ++n) {
      const LatticeFact& x = facts_[args[n].index()];
      if (x.kind == LatticeFact::kVarying) return x;
      unknown |= x.kind == LatticeFact::kUnknown;
      operands[n] = x.bits;
    }
    if (unknown) return {};
    Evaluation e = evaluate(i.op, i.type, f_.type_of(args[0]), {operands, args.size()});
    return e.trap == TrapCode::kNone ? LatticeFact{LatticeFact::kConstant, e.bits}
                                     : LatticeFact{LatticeFact::kVarying};
  }

  void visit_edges(const Inst& t) {
    auto only = way_of(t);
    for (uint32_t e = 0; e < t.edge_count; ++e) {
      if (!only || *only == e) take(t.edges_at + e);
    }
  }

  // Returns the number of the edge taken if it is known, `edge_count` if it may still become known,
  // and nothing if it varies.
  std::optional<uint32_t> way_of(const Inst& t) const {
    if (t.op != Opcode::kBranch && t.op != Opcode::kSwitch) return std::nullopt;
    const LatticeFact& c = facts_[f_.args(t)[0].index()];
    if (c.kind == LatticeFact::kVarying) return std::nullopt;
    if (c.kind == LatticeFact::kUnknown) return t.edge_count;
    if (t.op == Opcode::kBranch) return c.bits != 0 ? 0 : 1;
    return static_cast<uint32_t>(std::min<uint64_t>(c.bits, t.edge_count - 1));
  }

  void take(uint32_t edge) {
    const Edge& e = f_.edges[edge];
    auto params = f_.params(e.to);
    auto args = f_.list(e.args);
    bool moved = !reached_[e.to.index()];
    for (size_t n = 0; n < params.size(); ++n) moved |= lower(params[n], facts_[args[n].index()]);
    reached_[e.to.index()] = true;
    again_ |= moved && position_[e.to.index()] <= here_;
  }

  // ---- The result -------------------------------------------------------------------------------

  // Returns whether there is anything to rewrite: usually not, since the pass runs several times.
  bool found_anything() const {
    for (Block b : f_.layout) {
      for (Value p : f_.params(b)) {
        if (facts_[p.index()].kind == LatticeFact::kConstant) return true;
      }
      for (InstId id : f_.block(b).insts) {
        const Inst& i = f_.inst(id);
        auto args = f_.args(i);
        bool asks = i.op == Opcode::kSelect || i.op == Opcode::kTrapIf;
        bool decided = asks && (facts_[args[0].index()].kind == LatticeFact::kConstant ||
                                (i.op == Opcode::kSelect && args[1] == args[2]));
        bool constant = i.result.valid() && i.op != Opcode::kConst &&
                        facts_[i.result.index()].kind == LatticeFact::kConstant;
        if (decided || constant) return true;
      }
    }
    return false;
  }

  void rewrite() {
    for (Block b : order_) {
      if (reached_[b.index()]) name_params(b);
    }
    r_.run(order_, [&](InstId i) { return rewrite(i); });
  }

  // Replaces a constant parameter by a constant in the entry, which dominates every use.
  void name_params(Block b) {
    for (size_t n = 0, count = f_.params(b).size(); n < count; ++n) {
      Value p = f_.params(b)[n];
      const LatticeFact known = facts_[p.index()];
      if (known.kind != LatticeFact::kConstant) continue;
      Inst c{.op = Opcode::kConst, .type = f_.type_of(p), .imm = known.bits};
      InstId id = f_.add_inst(c, c.type);
      Value named = f_.inst(id).result;
      f_.value(named).block = f_.entry();
      auto& insts = f_.block(f_.entry()).insts;
      insts.insert(insts.end() - 1, id);
      r_.replace(p, named);
    }
  }

  // Returns whether to keep the instruction.
  bool rewrite(InstId id) {
    const Inst& i = f_.inst(id);
    if (i.op == Opcode::kTrapIf) return r_.constant_of(f_.args(i)[0]) != 0u;
    if (!i.result.valid() || i.op == Opcode::kConst || i.result.index() >= facts_.size())
      return true;
    const LatticeFact& known = facts_[i.result.index()];
    if (known.kind == LatticeFact::kConstant) {
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
  std::vector<LatticeFact> facts_;  // by Value::index()
  std::vector<bool> reached_;       // by Block::index()
  std::vector<Block> order_;        // reverse postorder
  std::vector<uint32_t> position_;  // by Block::index(): in order_
  uint32_t here_ = 0;               // in order_: the current block
  bool again_ = false;
};

}  // namespace

void sccp(Function& f) { ConstantPropagator(f).run(); }

}  // namespace uptier::jit
