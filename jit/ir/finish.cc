// Ends a build: needless parameters go, reachable blocks stay, sites get their numbers.
#include <algorithm>
#include <utility>

#include "jit/ir/builder_impl.h"
#include "jit/ir/number_sites.h"

namespace uptier {
namespace {

using jit::Edge;
using jit::Function;
using jit::Inst;
using jit::InstId;
using jit::is_terminated;

void keep_reachable(Function& f) {
  std::vector<bool> seen(f.blocks.size());
  std::vector<Block> work{f.entry()};
  seen[f.entry().index()] = true;
  while (!work.empty()) {
    Block b = work.back();
    work.pop_back();
    if (!is_terminated(f, b)) continue;
    for (const Edge& e : f.successors(b)) {
      if (e.to.index() >= seen.size() || seen[e.to.index()]) continue;
      seen[e.to.index()] = true;
      work.push_back(e.to);
    }
  }
  std::erase_if(f.layout, [&](Block b) { return !seen[b.index()]; });
}

// Removes block parameters that can only be one value. A parameter is needless when all its
// arguments, other than itself, are the same value; removing one may make another needless, so
// blocks are gone through until nothing changes.
class ParamPruner {
 public:
  ParamPruner(Function& f, std::vector<std::vector<Value>>& args) : f_(f), args_(args) {}

  void run() {
    alias_.resize(f_.values.size());
    incoming_.resize(f_.blocks.size());
    for (Block b : f_.layout) {
      if (!is_terminated(f_, b)) continue;
      const Inst& t = f_.terminator(b);
      for (uint32_t e = t.edges_at; e < t.edges_at + t.edge_count; ++e) {
        Block to = f_.edges[e].to;
        if (to.index() < incoming_.size()) incoming_[to.index()].push_back(e);
      }
    }
    while (prune_once()) {}
    rewrite();
  }

 private:
  // Follows aliases and shortens the way for the next one.
  Value resolve(Value v) {
    if (v.index() >= alias_.size()) return v;  // misuse of the builder; the verifier says so
    Value root = v;
    while (alias_[root.index()].valid()) root = alias_[root.index()];
    while (alias_[v.index()].valid()) v = std::exchange(alias_[v.index()], root);
    return root;
  }

  // What an edge passes to a parameter; none when the builder was misused.
  Value arg(uint32_t edge, Value param) {
    uint32_t index = f_.value(param).index;
    return index < args_[edge].size() ? resolve(args_[edge][index]) : Value::none();
  }

  // Forwards, where a parameter hangs on an earlier one, and backwards, where a loop's parameter
  // waits for those of the loops in it: nests of any depth take two rounds.
  bool prune_once() {
    bool changed = false;
    for (Block b : f_.layout) changed |= prune_block(b);
    for (size_t i = f_.layout.size(); i-- > 0;) changed |= prune_block(f_.layout[i]);
    return changed;
  }

  bool prune_block(Block b) {
    bool changed = false;
    if (b == f_.entry()) return false;
    for (Value p : f_.params(b)) changed |= prune(b, p);
    return changed;
  }

  bool prune(Block b, Value p) {
    if (alias_[p.index()].valid()) return false;
    Value only;
    for (uint32_t e : incoming_[b.index()]) {
      Value v = arg(e, p);
      if (v == p || v == only) continue;
      if (only.valid() || v.index() >= alias_.size()) return false;
      only = v;
    }
    if (!only.valid()) return false;
    alias_[p.index()] = only;
    return true;
  }

  void rewrite() {
    for (Block b : f_.layout) {
      for (InstId i : f_.block(b).insts) {
        for (Value& v : f_.args(f_.inst(i))) v = resolve(v);
      }
      if (b != f_.entry()) rewrite_params(b);
    }
  }

  void rewrite_params(Block b) {
    std::vector<Value> kept;
    for (Value p : f_.params(b)) {
      if (!alias_[p.index()].valid()) kept.push_back(p);
    }
    for (uint32_t e : incoming_[b.index()]) {
      std::vector<Value> args;
      for (Value p : kept) args.push_back(arg(e, p));
      f_.edges[e].args = f_.make_list(args);
    }
    for (uint32_t i = 0; i < kept.size(); ++i) f_.value(kept[i]).index = i;
    f_.block(b).params = f_.make_list(kept);
  }

  Function& f_;
  std::vector<std::vector<Value>>& args_;
  std::vector<Value> alias_;
  std::vector<std::vector<uint32_t>> incoming_;
};

}  // namespace

void BuilderAccess::adopt(FunctionBuilder& builder, Function f) {
  builder.impl_->adopted = std::move(f);
}

Function BuilderAccess::finish(FunctionBuilder& builder) {
  FunctionBuilder::Impl& m = *builder.impl_;
  if (m.adopted) return std::move(*m.adopted);
  for (uint32_t b = 0; b < m.blocks.size(); ++b) {
    if (!m.blocks[b].sealed) builder.seal(Block(b));
  }
  Function f = std::move(m.f);
  keep_reachable(f);
  ParamPruner(f, m.edge_args).run();
  jit::number_sites(f);
  return f;
}

}  // namespace uptier
