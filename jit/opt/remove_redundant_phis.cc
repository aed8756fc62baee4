// A parameter is redundant if all its arguments, other than itself, are the same value. Removing
// one may make another redundant, so the pass repeats until nothing changes. Each repetition costs
// the number of arguments, and there are usually two.
#include "jit/opt/passes.h"
#include "jit/opt/rewriter.h"

namespace uptier::jit {
namespace {

class ParamPruner {
 public:
  explicit ParamPruner(Function& f) : f_(f), rewriter_(f), preds_(f) {
    needless_.resize(f.values.size());
  }

  void run() {
    bool any = false;
    for (bool changed = true; changed;) {
      changed = false;
      for (Block b : f_.layout) {
        if (b != f_.entry()) changed |= prune_block(b);
      }
      any |= changed;
    }
    if (!any) return;
    rewriter_.run(f_.layout, [](InstId) { return true; });
    for (Block b : f_.layout) drop_needless(b);
  }

 private:
  bool prune_block(Block b) {
    bool changed = false;
    for (Value p : f_.params(b)) {
      if (!needless_[p.index()]) changed |= prune(b, p);
    }
    return changed;
  }

  bool prune(Block b, Value p) {
    Value only;
    for (const Predecessor& from : preds_[b.index()]) {
      Value v = rewriter_.resolve(f_.list(f_.edges[from.edge].args)[f_.value(p).index]);
      if (v == p || v == only) continue;
      if (only.valid()) return false;
      only = v;
    }
    if (!only.valid()) return false;
    rewriter_.replace(p, only);
    needless_[p.index()] = true;
    return true;
  }

  void drop_needless(Block b) {
    ValueList& params = f_.block(b).params;
    std::vector<uint32_t> kept;
    auto all = f_.list(params);
    for (uint32_t i = 0; i < all.size(); ++i) {
      if (!needless_[all[i].index()]) kept.push_back(i);
    }
    if (kept.size() == all.size()) return;
    keep(params, kept);
    auto rest = f_.list(params);
    for (uint32_t i = 0; i < rest.size(); ++i) f_.value(rest[i]).index = i;
    for (const Predecessor& from : preds_[b.index()]) keep(f_.edges[from.edge].args, kept);
  }

  void keep(ValueList& l, const std::vector<uint32_t>& kept) {
    auto values = f_.list(l);
    for (uint32_t i = 0; i < kept.size(); ++i) values[i] = values[kept[i]];
    l.size = static_cast<uint32_t>(kept.size());
  }

  Function& f_;
  Rewriter rewriter_;
  Predecessors preds_;
  std::vector<bool> needless_;
};

}  // namespace

void remove_redundant_phis(Function& f) { ParamPruner(f).run(); }

}  // namespace uptier::jit
