#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

class BranchFolder {
 public:
  explicit BranchFolder(Function& f) : f_(f), alias_(f.values.size()) {}

  void run() {
    for (Block b : f_.layout) fold(f_.terminator(b));
    remove_unreachable(f_);
    append_only_successors();
  }

 private:
  void fold(Inst& t) {
    if (t.op == Opcode::kBranch) fold_branch(t);
    if (t.op == Opcode::kSwitch) fold_switch(t);
  }

  void fold_branch(Inst& t) {
    auto edges = f_.edges_of(t);
    if (same(edges[0], edges[1])) return go(t, 0);
    const Inst* c = constant(f_.args(t)[0]);
    if (c) go(t, c->imm != 0 ? 0 : 1);
  }

  void fold_switch(Inst& t) {
    const Inst* c = constant(f_.args(t)[0]);
    uint32_t last = t.edge_count - 1;
    if (last == 0) return go(t, 0);
    if (c) go(t, c->imm < last ? static_cast<uint32_t>(c->imm) : last);
  }

  bool same(const Edge& a, const Edge& b) {
    auto x = f_.list(a.args), y = f_.list(b.args);
    return a.to == b.to && std::equal(x.begin(), x.end(), y.begin(), y.end());
  }

  const Inst* constant(Value v) {
    InstId i = f_.value(v).inst;
    return i.valid() && f_.inst(i).op == Opcode::kConst ? &f_.inst(i) : nullptr;
  }

  void go(Inst& t, uint32_t edge) {
    t.op = Opcode::kJump;
    t.args.size = 0;
    t.edges_at += edge;
    t.edge_count = 1;
  }

  void append_only_successors() {
    Predecessors preds(f_);
    std::vector<bool> gone(f_.blocks.size());
    bool any = false;
    for (Block b : f_.layout) {
      if (gone[b.index()]) continue;
      while (append_successor(b, preds, gone)) any = true;
    }
    if (!any) return;
    std::erase_if(f_.layout, [&](Block b) { return gone[b.index()]; });
    resolve_all();
  }

  bool append_successor(Block b, const Predecessors& preds, std::vector<bool>& gone) {
    const Inst& t = f_.terminator(b);
    if (t.op != Opcode::kJump) return false;
    const Edge& e = f_.edges_of(t)[0];
    Block to = e.to;
    if (to == b || to == f_.entry() || preds[to.index()].size() != 1) return false;
    if (is_loop_header(to)) return false;
    auto params = f_.params(to);
    auto args = f_.list(e.args);
    for (size_t i = 0; i < params.size(); ++i) alias_[params[i].index()] = args[i];
    auto& mine = f_.block(b).insts;
    auto& theirs = f_.block(to).insts;
    mine.pop_back();
    for (InstId i : theirs) {
      mine.push_back(i);
      if (Value r = f_.inst(i).result; r.valid()) f_.value(r).block = b;
    }
    theirs.clear();
    f_.block(to).params.size = 0;
    gone[to.index()] = true;
    return true;
  }

  bool is_loop_header(Block b) {
    return f_.inst(f_.block(b).insts.front()).op == Opcode::kLoopHeader;
  }

  Value resolve(Value v) {
    while (alias_[v.index()].valid()) v = alias_[v.index()];
    return v;
  }

  void resolve_all() {
    for (Block b : f_.layout) {
      for (InstId i : f_.block(b).insts) {
        for (Value& v : f_.args(f_.inst(i))) v = resolve(v);
      }
      for (Edge& e : f_.successors(b)) {
        for (Value& v : f_.list(e.args)) v = resolve(v);
      }
    }
  }

  Function& f_;
  std::vector<Value> alias_;
};

}  // namespace

void simplify_cfg(Function& f) { BranchFolder(f).run(); }

}  // namespace uptier::jit
