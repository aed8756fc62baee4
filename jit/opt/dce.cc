#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

bool must_stay(const Inst& i) {
  uint8_t effects = info(i.op).effects;
  if (info(i.op).shape == Shape::kLoad) return (i.flags & kMemTraps) != 0;
  return (effects & (kWrites | kCanTrap | kEndsBlock | kPinned)) != 0;
}

class DeadRemover {
 public:
  explicit DeadRemover(Function& f)
      : f_(f), preds_(f), live_(f.values.size()), kept_(f.insts.size()) {}

  void run() {
    for (Block b : f_.layout) {
      for (InstId i : f_.block(b).insts) {
        if (must_stay(f_.inst(i))) keep(i);
      }
    }
    for (Value p : f_.params(f_.entry())) mark(p);
    while (!work_.empty()) {
      Value v = work_.back();
      work_.pop_back();
      need(v);
    }
    for (Block b : f_.layout) sweep(b);
  }

 private:
  void mark(Value v) {
    if (live_[v.index()]) return;
    live_[v.index()] = true;
    work_.push_back(v);
  }

  void keep(InstId i) {
    kept_[i.index()] = true;
    for (Value v : f_.args(f_.inst(i))) mark(v);
  }

  void need(Value v) {
    const ValueData& d = f_.value(v);
    if (d.inst.valid()) {
      if (!kept_[d.inst.index()]) keep(d.inst);
      return;
    }
    if (d.block == f_.entry()) return;
    for (const Predecessor& p : preds_[d.block.index()]) {
      mark(f_.list(f_.edges[p.edge].args)[d.index]);
    }
  }

  void sweep(Block b) {
    std::erase_if(f_.block(b).insts, [&](InstId i) { return !kept_[i.index()]; });
    if (b == f_.entry()) return;
    uint32_t kept = 0;
    auto params = f_.list(f_.block(b).params);
    for (uint32_t i = 0; i < params.size(); ++i) {
      if (!live_[params[i].index()]) continue;
      for (const Predecessor& p : preds_[b.index()]) {
        auto args = f_.list(f_.edges[p.edge].args);
        args[kept] = args[i];
      }
      f_.value(params[i]).index = kept;
      params[kept++] = params[i];
    }
    f_.block(b).params.size = kept;
    for (const Predecessor& p : preds_[b.index()]) f_.edges[p.edge].args.size = kept;
  }

  Function& f_;
  Predecessors preds_;
  std::vector<bool> live_;
  std::vector<bool> kept_;
  std::vector<Value> work_;
};

}  // namespace

void dce(Function& f) { DeadRemover(f).run(); }

}  // namespace uptier::jit
