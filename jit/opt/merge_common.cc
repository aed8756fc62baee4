// One table for the whole function, filled in reverse postorder: an entry is used where its block
// dominates, and is replaced where it does not. Comparisons merge within a block only, because code
// is better when each branch computes its own flags.
#include <unordered_map>

#include "jit/ir/dominators.h"
#include "jit/opt/passes.h"
#include "jit/opt/rewriter.h"

namespace uptier::jit {
namespace {

bool may_merge(const Inst& i) {
  if (!i.result.valid()) return false;
  uint8_t effects = info(i.op).effects;
  if (info(i.op).shape == Shape::kLoad) return (i.flags & kMemInvariant) != 0;
  return (effects & (kReads | kWrites | kPinned)) == 0;
}

class CommonMerger {
 public:
  explicit CommonMerger(Function& f) : f_(f), rewriter_(f), doms_(compute_dominators(f)) {
    table_.reserve(f.insts.size() / 2);
  }

  void run() {
    rewriter_.run(doms_.order, [&](InstId i) { return !merge(i); });
  }

 private:
  // Returns whether the instruction was replaced.
  bool merge(InstId id) {
    const Inst& i = f_.inst(id);
    if (!may_merge(i)) return false;
    auto [it, fresh] = table_.try_emplace(hash(i), id);
    if (fresh) return false;
    const Inst& other = f_.inst(it->second);
    if (!equal(i, other) || !usable(other)) {
      it->second = id;
      return false;
    }
    rewriter_.replace(i.result, other.result);
    return true;
  }

  bool usable(const Inst& other) {
    Block from = f_.value(other.result).block;
    Shape s = info(other.op).shape;
    if (s == Shape::kCompare || s == Shape::kTest) return from == rewriter_.block();
    return doms_.dominates(from, rewriter_.block());
  }

  uint64_t hash(const Inst& i) {
    uint64_t h = static_cast<uint64_t>(i.op) | static_cast<uint64_t>(i.type) << 8;
    auto mix = [&](uint64_t x) { h = (h ^ x) * 0x9E3779B97F4A7C15ull, h ^= h >> 29; };
    mix(i.imm);
    for (Value v : f_.args(i)) mix(v.index());
    return h;
  }

  bool equal(const Inst& a, const Inst& b) {
    auto x = f_.args(a), y = f_.args(b);
    return a.op == b.op && a.type == b.type && a.imm == b.imm &&
           f_.type_of(a.result) == f_.type_of(b.result) &&
           std::equal(x.begin(), x.end(), y.begin(), y.end());
  }

  Function& f_;
  Rewriter rewriter_;
  Dominators doms_;
  std::unordered_map<uint64_t, InstId> table_;
};

}  // namespace

void merge_common(Function& f) { CommonMerger(f).run(); }

}  // namespace uptier::jit
