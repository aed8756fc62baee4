#include "jit/ir/liveness.h"

#include <span>

namespace uptier::jit {
namespace {

// Lists of uint32_t by key, in two arrays: filled in two equal passes (count, then place).
class Buckets {
 public:
  explicit Buckets(size_t keys) : start_(keys + 2) {}
  void count(uint32_t key) { ++start_[key + 2]; }
  void close() {
    for (size_t i = 2; i < start_.size(); ++i) start_[i] += start_[i - 1];
    items_.resize(start_.back());
  }
  void place(uint32_t key, uint32_t item) { items_[start_[key + 1]++] = item; }
  std::span<const uint32_t> of(uint32_t key) const {
    return {items_.data() + start_[key], start_[key + 1] - start_[key]};
  }

 private:
  std::vector<uint32_t> start_;
  std::vector<uint32_t> items_;
};

class Walker {
 public:
  explicit Walker(const Function& f)
      : f_(f),
        def_block_(f.values.size()),
        users_(f.values.size()),
        preds_(f.blocks.size()),
        last_(f.blocks.size(), UINT32_MAX) {
    live_.live_in.resize(f.blocks.size());
  }

  Liveness run() {
    find_definitions();
    each_use([&](Value v, Block) { users_.count(v.index()); });
    each_edge([&](Block, Block to) { preds_.count(to.index()); });
    users_.close();
    preds_.close();
    each_use([&](Value v, Block b) { users_.place(v.index(), b.index()); });
    each_edge([&](Block from, Block to) { preds_.place(to.index(), from.index()); });
    // By rising value index, so every set comes out sorted.
    for (uint32_t v = 0; v < f_.values.size(); ++v) {
      for (uint32_t b : users_.of(v)) walk_up(Value(v), Block(b));
    }
    return std::move(live_);
  }

 private:
  void find_definitions() {
    for (Block b : f_.layout) {
      for (Value p : f_.params(b)) def_block_[p.index()] = b;
      for (InstId i : f_.block(b).insts) {
        if (Value r = f_.inst(i).result; r.valid()) def_block_[r.index()] = b;
      }
    }
  }

  // Visits the uses of values outside their own block; there they are always behind the definition.
  template <typename Visit>
  void each_use(Visit visit) {
    auto at = [&](Value v, Block b) {
      if (def_block_[v.index()] != b) visit(v, b);
    };
    for (Block b : f_.layout) {
      for (InstId i : f_.block(b).insts) {
        for (Value v : f_.args(f_.inst(i))) at(v, b);
      }
      for (const Edge& e : f_.successors(b)) {
        for (Value v : f_.list(e.args)) at(v, b);
      }
    }
  }

  template <typename Visit>
  void each_edge(Visit visit) {
    for (Block b : f_.layout) {
      for (const Edge& e : f_.successors(b)) visit(b, e.to);
    }
  }

  void walk_up(Value v, Block from) {
    uint32_t definition = def_block_[v.index()].index();
    auto reach = [&](uint32_t b) {
      if (b == definition || last_[b] == v.index()) return;
      last_[b] = v.index();
      live_.live_in[b].push_back(v);
      work_.push_back(b);
    };
    reach(from.index());
    while (!work_.empty()) {
      uint32_t b = work_.back();
      work_.pop_back();
      for (uint32_t p : preds_.of(b)) reach(p);
    }
  }

  const Function& f_;
  Liveness live_;
  std::vector<Block> def_block_;
  Buckets users_;
  Buckets preds_;
  std::vector<uint32_t> last_;  // by block: the value last added to its set
  std::vector<uint32_t> work_;
};

}  // namespace

Liveness compute_liveness(const Function& f) { return Walker(f).run(); }

}  // namespace uptier::jit
