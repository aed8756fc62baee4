#include "jit/opt/repair_ssa.h"

#include <algorithm>
#include <utility>

#include "jit/opt/place_table.h"

namespace uptier::jit {
namespace {

class SsaRepairer {
 public:
  SsaRepairer(Function& f, std::span<const Redefinition> values)
      : f_(f), preds_(f), redefined_(f.values.size()), alive_(f.values.size()) {
    std::vector<bool> laid_out(f.blocks.size());
    for (Block b : f.layout) laid_out[b.index()] = true;
    for (const Redefinition& d : values) {
      redefined_[d.value.index()] = true;
      again_.set(d.value, d.block, d.again);
      alive_[d.value.index()] = laid_out[f.value(d.value).block.index()];
    }
  }

  void run() {
    for (Block b : f_.layout) rewrite(b);
  }

 private:
  bool is_double(Value v) const { return v.index() < redefined_.size() && redefined_[v.index()]; }
  // Returns whether the value's own definition is reachable.
  bool is_alive(Value v) const { return alive_[v.index()]; }

  void rewrite(Block b) {
    here_.clear();
    for (Value p : f_.params(b)) {
      if (is_double(p)) here_.push_back(p);
    }
    for (size_t n = 0; n < f_.block(b).insts.size(); ++n) {
      InstId id = f_.block(b).insts[n];
      rewrite_list(f_.inst(id).args, b);
      if (Value r = f_.inst(id).result; r.valid() && is_double(r)) here_.push_back(r);
    }
    const Inst& t = f_.terminator(b);
    for (uint32_t e = t.edges_at, end = e + t.edge_count; e < end; ++e) {
      rewrite_list(f_.edges[e].args, b);
    }
  }

  // The list may move in the pool while values are read, so each access computes the index again.
  // Arguments that a read appended are already new values.
  void rewrite_list(const ValueList& l, Block b) {
    for (uint32_t k = 0; k < l.size; ++k) {
      Value v = f_.pool[l.at + k];
      if (!is_double(v)) continue;
      bool defined = std::find(here_.begin(), here_.end(), v) != here_.end();
      Value now = defined ? v : read_at_start(v, b);
      fill_pending();
      f_.pool[l.at + k] = now;
    }
  }

  // Returns the definition that holds at the end of the block, or none. The redefinition may itself
  // be a value with several definitions: then it is the one that reaches the block.
  Value defined_in(Value v, Block b) {
    const Value* further = again_.find(v, b);
    bool own = is_alive(v) && f_.value(v).block == b;
    if (further == nullptr) return own ? v : Value::none();
    Value again = *further;
    if (!is_double(again) || (is_alive(again) && f_.value(again).block == b)) return again;
    return read_at_start(again, b);
  }

  Value read_at_end(Value v, Block b) {
    Value here = defined_in(v, b);
    return here.valid() ? here : read_at_start(v, b);
  }

  // Walks up while there is only one predecessor. At a join it makes a parameter, whose arguments
  // wait in pending_.
  Value read_at_start(Value v, Block b) {
    const size_t first = walked_.size();  // defined_in may call this function again
    Value found;
    while (!found.valid()) {
      if (const Value* known = known_.find(v, b)) {
        found = *known;
        break;
      }
      walked_.push_back(b);
      if (preds_[b.index()].size() != 1) {
        found = f_.add_block_param(b, f_.type_of(v));
        pending_.push_back({v, b});
        break;
      }
      b = preds_[b.index()][0].from;
      found = defined_in(v, b);
    }
    for (size_t n = first; n < walked_.size(); ++n) known_.set(v, walked_[n], found);
    walked_.resize(first);
    return found;
  }

  void fill_pending() {
    while (!pending_.empty()) {
      auto [v, b] = pending_.back();
      pending_.pop_back();
      uint32_t index = f_.value(*known_.find(v, b)).index;
      for (const Predecessor& p : preds_[b.index()]) {
        waiting_.push_back({p.edge, index, read_at_end(v, p.from)});
      }
    }
    for (const Passed& w : waiting_) {
      ValueList& l = f_.edges[w.edge].args;
      while (l.size <= w.index) f_.push(l, Value::none());
      f_.pool[l.at + w.index] = w.value;
    }
    waiting_.clear();
  }

  // An argument that an edge has to pass to a parameter.
  struct Passed {
    uint32_t edge, index;
    Value value;
  };

  Function& f_;
  Predecessors preds_;
  std::vector<bool> redefined_;  // by Value::index()
  PlaceTable again_;             // by (value, block): the redefinition there
  std::vector<bool> alive_;
  std::vector<Value> here_;    // values whose own definition in the current block has been passed
  PlaceTable known_;           // by (value, block): the value at the block's start
  std::vector<Block> walked_;  // blocks that the reads in progress walked through
  std::vector<std::pair<Value, Block>> pending_;
  std::vector<Passed> waiting_;
};

}  // namespace

void repair_ssa(Function& f, std::span<const Redefinition> values) { SsaRepairer(f, values).run(); }

}  // namespace uptier::jit
