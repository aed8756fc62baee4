// Global value numbering with one hash table, filled in reverse postorder. An entry is used if its
// block dominates the current one, and replaced otherwise. Comparisons are merged only within a
// block: code is better when each branch computes its own flags.
#include <algorithm>
#include <bit>
#include <vector>

#include "jit/analysis/dominators.h"
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

// The latest instruction of each hash, in one allocation.
class LatestByHash {
 public:
  explicit LatestByHash(size_t most) : entries_(std::bit_ceil(2 * most + 1)) {}

  // Returns the entry of a hash. If it is invalid, the caller fills it in.
  InstId& of(uint64_t hash) {
    size_t at = hash & (entries_.size() - 1);
    while (entries_[at].inst.valid() && entries_[at].hash != hash) {
      at = (at + 1) & (entries_.size() - 1);
    }
    entries_[at].hash = hash;
    return entries_[at].inst;
  }

 private:
  struct Entry {
    uint64_t hash = 0;
    InstId inst;
  };
  std::vector<Entry> entries_;  // at least half of them are empty
};

size_t count_instructions(const Function& f) {
  size_t n = 0;
  for (Block b : f.layout) n += f.block(b).insts.size();
  return n;
}

class CommonMerger {
 public:
  explicit CommonMerger(Function& f)
      : f_(f), rewriter_(f), doms_(compute_dominators(f)), latest_(count_instructions(f)) {}

  void run() {
    rewriter_.run(doms_.order, [&](InstId i) { return !merge(i); });
  }

 private:
  // Returns whether the instruction was replaced.
  bool merge(InstId id) {
    const Inst& i = f_.inst(id);
    if (!may_merge(i)) return false;
    InstId& latest = latest_.of(hash(i));
    if (!latest.valid()) {
      latest = id;
      return false;
    }
    const Inst& other = f_.inst(latest);
    if (!equal(i, other) || !usable(other)) {
      latest = id;
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
  LatestByHash latest_;
};

}  // namespace

void gvn(Function& f) { CommonMerger(f).run(); }

}  // namespace uptier::jit
