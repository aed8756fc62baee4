// Ends a build: needless parameters go, reachable blocks stay, sites get their numbers.
#include <algorithm>

#include "jit/ir/builder_impl.h"
#include "jit/ir/cfg_hash.h"

namespace uptier {
namespace {

using jit::Edge;
using jit::Function;
using jit::Inst;
using jit::InstId;

bool is_terminated(const Function& f, Block b) {
  const auto& insts = f.block(b).insts;
  return !insts.empty() && (info(f.inst(insts.back()).op).effects & kEndsBlock);
}

void keep_reachable(Function& f) {
  std::vector<bool> seen(f.blocks.size());
  std::vector<Block> work{f.entry()};
  seen[f.entry().index()] = true;
  while (!work.empty()) {
    Block b = work.back();
    work.pop_back();
    if (!is_terminated(f, b)) continue;
    for (const Edge& e : f.successors(b)) {
      if (!seen[e.to.index()]) work.push_back(e.to);
      seen[e.to.index()] = true;
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
        incoming_[f_.edges[e].to.index()].push_back(e);
      }
    }
    while (prune_once()) {
    }
    rewrite();
  }

 private:
  Value resolve(Value v) {
    while (alias_[v.index()].valid()) v = alias_[v.index()];
    return v;
  }

  bool prune_once() {
    bool changed = false;
    for (Block b : f_.layout) {
      if (b == f_.entry()) continue;
      for (Value p : f_.params(b)) changed |= prune(b, p);
    }
    return changed;
  }

  bool prune(Block b, Value p) {
    if (alias_[p.index()].valid()) return false;
    Value only;
    for (uint32_t e : incoming_[b.index()]) {
      Value v = resolve(args_[e][f_.value(p).index]);
      if (v == p || v == only) continue;
      if (only.valid()) return false;
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
      for (Value p : kept) args.push_back(resolve(args_[e][f_.value(p).index]));
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

void number_sites(Function& f) {
  f.block_sites = static_cast<uint32_t>(f.layout.size());
  SiteId next = f.block_sites + 1;
  auto each = [&](auto visit) {
    for (Block b : f.layout) {
      for (InstId i : f.block(b).insts) visit(f.inst(i));
    }
  };
  each([&](Inst& i) {
    Shape s = info(i.op).shape;
    bool is_call = s == Shape::kCall || s == Shape::kCallIndirect || s == Shape::kCallHost;
    if (is_call) i.site = next++;
  });
  each([&](Inst& i) {
    if (i.op == Opcode::kProbe) i.aux = next++;
  });
  f.site_count = next - 1;
}

void place_block_probes(Function& f) {
  SiteId site = 1;
  for (Block b : f.layout) {
    InstId probe = f.add_inst({.op = Opcode::kProbe,
                               .aux = site++,
                               .imm = static_cast<uint64_t>(ProbeKind::kBlock)},
                              Type::kNone);
    auto& insts = f.block(b).insts;
    bool is_header = !insts.empty() && f.inst(insts[0]).op == Opcode::kLoopHeader;
    insts.insert(insts.begin() + (is_header ? 1 : 0), probe);
  }
}

// Loops whose header was unreachable are gone: number the rest densely, in build order.
void number_loops(Function& f) {
  f.loop_count = 0;
  for (Block b : f.layout) {
    const auto& insts = f.block(b).insts;
    if (!insts.empty() && f.inst(insts[0]).op == Opcode::kLoopHeader) {
      f.inst(insts[0]).aux = f.loop_count++;
    }
  }
}

}  // namespace

Function BuilderAccess::finish(FunctionBuilder& builder) {
  FunctionBuilder::Impl& m = *builder.impl_;
  for (uint32_t b = 0; b < m.blocks.size(); ++b) {
    if (!m.blocks[b].sealed) builder.seal(Block(b));
  }
  Function f = std::move(m.f);
  keep_reachable(f);
  ParamPruner(f, m.edge_args).run();
  number_sites(f);
  place_block_probes(f);
  number_loops(f);
  bool whole = std::all_of(f.layout.begin(), f.layout.end(),
                           [&](Block b) { return is_terminated(f, b); });
  if (whole) f.cfg_hash = jit::cfg_hash(f);
  return f;
}

}  // namespace uptier
