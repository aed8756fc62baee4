#include "jit/ir/liveness.h"

#include <span>

namespace uptier::jit {
namespace {

// Sorts items by their keys, which are below `keys`, keeping the order of equal ones: the items of
// key k end up from first[k] to first[k + 1].
template <typename Item, typename Key, typename Out, typename Place>
void sort_by_key(size_t keys, std::span<const Item> items, Key key, std::vector<uint32_t>& first,
                 std::vector<Out>& out, Place value) {
  first.assign(keys + 2, 0);
  out.resize(items.size());
  for (const Item& i : items) ++first[key(i) + 2];
  for (size_t k = 2; k < first.size(); ++k) first[k] += first[k - 1];
  for (const Item& i : items) out[first[key(i) + 1]++] = value(i);
}

class Walker {
 public:
  explicit Walker(const Function& f)
      : f_(f), def_block_(f.values.size()), last_(f.blocks.size(), UINT32_MAX) {}

  Liveness run() {
    find_definitions();
    find_uses();
    find_predecessors();
    // By rising value index, so every set comes out sorted.
    for (uint32_t v = 0; v < f_.values.size(); ++v) {
      for (uint32_t u = first_user_[v]; u < first_user_[v + 1]; ++u) walk_up(Value(v), users_[u]);
    }
    return {ValueSets(f_.blocks.size(), found_)};
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

  // Finds the uses of values outside their own block; there they are always behind the definition.
  void find_uses() {
    std::vector<Use> uses;
    auto at = [&](Value v, Block b) {
      if (def_block_[v.index()] != b) uses.push_back({v.index(), b.index()});
    };
    for (Block b : f_.layout) {
      for (InstId i : f_.block(b).insts) {
        for (Value v : f_.args(f_.inst(i))) at(v, b);
      }
      for (const Edge& e : f_.successors(b)) {
        for (Value v : f_.list(e.args)) at(v, b);
      }
    }
    sort_by_key(
        f_.values.size(), std::span<const Use>(uses), [](const Use& u) { return u.value; },
        first_user_, users_, [](const Use& u) { return u.block; });
  }

  void find_predecessors() {
    std::vector<Step> steps;
    for (Block b : f_.layout) {
      for (const Edge& e : f_.successors(b)) steps.push_back({b.index(), e.to.index()});
    }
    sort_by_key(
        f_.blocks.size(), std::span<const Step>(steps), [](const Step& s) { return s.to; },
        first_pred_, preds_, [](const Step& s) { return s.from; });
  }

  void walk_up(Value v, uint32_t from) {
    uint32_t definition = def_block_[v.index()].index();
    auto reach = [&](uint32_t b) {
      if (b == definition || last_[b] == v.index()) return;
      last_[b] = v.index();
      found_.push_back({b, v});
      work_.push_back(b);
    };
    reach(from);
    while (!work_.empty()) {
      uint32_t b = work_.back();
      work_.pop_back();
      for (uint32_t p = first_pred_[b]; p < first_pred_[b + 1]; ++p) reach(preds_[p]);
    }
  }

  struct Use {
    uint32_t value, block;
  };
  struct Step {
    uint32_t from, to;
  };

  const Function& f_;
  std::vector<Block> def_block_;
  std::vector<uint32_t> first_user_, users_;  // by value: the blocks that use it
  std::vector<uint32_t> first_pred_, preds_;  // by block
  std::vector<uint32_t> last_;                // by block: the value last added to its set
  std::vector<uint32_t> work_;
  std::vector<ValueSets::Member> found_;
};

}  // namespace

ValueSets::ValueSets(size_t blocks, std::span<const Member> members) {
  sort_by_key(
      blocks, members, [](const Member& m) { return m.block; }, first_, values_,
      [](const Member& m) { return m.value; });
}

Liveness compute_liveness(const Function& f) { return Walker(f).run(); }

}  // namespace uptier::jit
