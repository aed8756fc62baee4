#include "jit/analysis/liveness.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "jit/analysis/deopt_targets.h"

namespace uptier::jit {
namespace {

constexpr uint32_t kBatch = 64;

// Sorts items by their keys, which are below `keys`, keeping the order of equal ones: the items of
// key k end up from first[k] to first[k + 1].
template <typename Item, typename Key>
void sort_by_key(size_t keys, std::span<const Item> items, Key key, std::vector<uint32_t>& first,
                 std::vector<Item>& out) {
  first.assign(keys + 2, 0);
  out.resize(items.size());
  for (const Item& i : items) ++first[key(i) + 2];
  for (size_t k = 2; k < first.size(); ++k) first[k] += first[k - 1];
  for (const Item& i : items) out[first[key(i) + 1]++] = i;
}

class Walker {
 public:
  explicit Walker(const Function& f) : f_(f), number_(f.values.size()), blocks_(f.blocks.size()) {
    answer_.lifetimes.resize(f.values.size());
    answer_.positions.resize(f.blocks.size());
  }

  Liveness run() {
    prepare();
    parts_.reserve(blocks_.size());
    solve_all();
    answer_.live_in = ValueSets(f_.blocks.size(), answer_.crossing, parts_);
    return std::move(answer_);
  }

  bool exceeds(uint64_t members) {
    most_ = members;
    prepare();
    solve_all();
    return members_ > most_;
  }

 private:
  struct Use {
    Value value;
    Block block;
  };

  void prepare() {
    walk();
    number_crossing();
    sort_by_key(
        f_.blocks.size(), std::span<const Step>(steps_), [](const Step& s) { return s.to; },
        first_pred_, preds_);
    work_.reserve(blocks_.size());
    touched_.reserve(blocks_.size());
  }
  struct Step {
    uint32_t from, to;
  };
  // A block's sets, for the values of one batch.
  struct State {
    uint64_t defines = 0, live_in = 0;
    uint64_t pending = 0;  // live into it, and not yet passed on
  };

  // Finds uses outside of the defining block; inside it, a use always comes after the definition.
  void walk() {
    uses_.reserve(f_.pool.size());
    steps_.reserve(f_.edges.size());
    std::span<Lifetime> lifetimes = answer_.lifetimes;
    uint32_t position = 0;
    for (Block b : f_.layout) {
      uint32_t last_call = 0;  // so far in the block; 0: none
      auto use = [&](Value v) {
        Lifetime& l = lifetimes[v.index()];
        l.end = position;  // positions rise
        if (l.block != b) {
          uses_.push_back({v, b});
        } else if (l.start < last_call) {
          answer_.across_calls.push_back(v);
        }
      };
      uint32_t first = ++position;
      for (Value p : f_.params(b)) lifetimes[p.index()] = {b, first, first + 1};
      for (InstId id : f_.block(b).insts) {
        const Inst& i = f_.inst(id);
        ++position;
        for (Value v : f_.args(i)) use(v);
        if (i.result.valid()) lifetimes[i.result.index()] = {b, position, position};
        if (returns_to_point(i.op)) last_call = position;
        answer_.has_guards |= i.op == Opcode::kGuard;
      }
      for (const Edge& e : f_.successors(b)) {
        for (Value v : f_.list(e.args)) use(v);
        steps_.push_back({b.index(), e.to.index()});
      }
      answer_.positions[b.index()] = {first, position};
    }
  }

  // Numbers values by rising index, so every set comes out sorted.
  void number_crossing() {
    for (const Use& u : uses_) number_[u.value.index()] = 1;
    for (uint32_t v = 0; v < number_.size(); ++v) {
      if (number_[v] == 0) continue;
      number_[v] = static_cast<uint32_t>(answer_.crossing.size());
      answer_.crossing.push_back(Value(v));
    }
  }

  void solve_all() {
    if (answer_.crossing.size() <= kBatch) return solve(0, uses_);
    std::vector<uint32_t> first;
    std::vector<Use> uses;
    size_t batches = (answer_.crossing.size() + kBatch - 1) / kBatch;
    auto batch_of = [&](const Use& u) { return number_[u.value.index()] / kBatch; };
    sort_by_key(batches, std::span<const Use>(uses_), batch_of, first, uses);
    for (uint32_t b = 0; b < batches && members_ <= most_; ++b) {
      solve(b * kBatch, std::span(uses).subspan(first[b], first[b + 1] - first[b]));
    }
  }

  // Finds where the 64 values from number `first` on are live.
  void solve(uint32_t first, std::span<const Use> uses) {
    auto last = std::min<size_t>(first + kBatch, answer_.crossing.size());
    auto of_batch = std::span(answer_.crossing).subspan(first, last - first);
    for (uint32_t k = 0; k < of_batch.size(); ++k) {
      definer(of_batch[k]).defines |= uint64_t{1} << k;
    }
    for (const Use& u : uses) {
      reach(u.block.index(), uint64_t{1} << (number_[u.value.index()] - first));
    }
    while (!work_.empty()) {
      uint32_t b = work_.back();
      work_.pop_back();
      uint64_t bits = std::exchange(blocks_[b].pending, 0);
      for (uint32_t p = first_pred_[b]; p < first_pred_[b + 1]; ++p) reach(preds_[p].from, bits);
    }
    for (Value v : of_batch) definer(v).defines = 0;
    for (uint32_t b : touched_) {
      uint64_t bits = std::exchange(blocks_[b].live_in, 0);
      members_ += static_cast<uint32_t>(std::popcount(bits));
      if (most_ == UINT64_MAX) parts_.push_back({b, first, bits});
    }
    touched_.clear();
  }

  State& definer(Value v) { return blocks_[answer_.lifetimes[v.index()].block.index()]; }

  // Marks values as live at the end of a block, or as used in it.
  void reach(uint32_t b, uint64_t bits) {
    State& s = blocks_[b];
    bits &= ~(s.defines | s.live_in);
    if (bits == 0) return;
    if (s.live_in == 0) touched_.push_back(b);
    if (s.pending == 0) work_.push_back(b);
    s.live_in |= bits;
    s.pending |= bits;
  }

  const Function& f_;
  Liveness answer_;
  std::vector<uint32_t> number_;  // by value: its place in answer_.crossing
  std::vector<Use> uses_;
  std::vector<Step> steps_, preds_;   // edges; by the block they lead to
  std::vector<uint32_t> first_pred_;  // by block
  std::vector<State> blocks_;
  std::vector<uint32_t> work_;     // blocks with something pending
  std::vector<uint32_t> touched_;  // blocks into which something is live
  std::vector<ValueSets::Part> parts_;
  uint64_t members_ = 0, most_ = UINT64_MAX;  // of all sets
};

}  // namespace

ValueSets::ValueSets(size_t blocks, std::span<const Value> candidates, std::span<const Part> parts)
    : first_(blocks + 1) {
  for (const Part& p : parts) first_[p.block] += static_cast<uint32_t>(std::popcount(p.bits));
  uint32_t total = 0;
  for (uint32_t& n : first_) n = std::exchange(total, total + n);
  values_.resize(total);
  std::vector<uint32_t> next = first_;
  for (const Part& p : parts) {
    uint32_t at = next[p.block];
    for (uint64_t left = p.bits; left != 0; left &= left - 1) {
      values_[at++] = candidates[p.first + static_cast<uint32_t>(std::countr_zero(left))];
    }
    next[p.block] = at;
  }
}

Liveness compute_liveness(const Function& f) { return Walker(f).run(); }

bool liveness_exceeds(const Function& f, uint64_t members) { return Walker(f).exceeds(members); }

}  // namespace uptier::jit
