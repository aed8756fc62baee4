#include "jit/regalloc/live_ranges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <span>
#include <utility>

namespace uptier::jit::machine {
namespace {

constexpr size_t kBatch = 64;
constexpr uint32_t kNotFound = UINT32_MAX;
// Sorting one block costs as much as visiting this many.
constexpr size_t kSparse = 16;

class RangeFinder {
 public:
  explicit RangeFinder(const MachineFunction& m) : m_(m) {}

  LiveRanges run() {
    collect_uses();
    states_.resize(m_.blocks.size());
    collect_predecessors();
    choose_crossing();
    for (size_t k = 0; k < crossing_.size(); k += kBatch) find(k);
    auto vregs = static_cast<uint32_t>(m_.vregs.size());
    live_.ranges_at.reserve(vregs + 1);
    for (uint32_t v = 0; v < vregs; ++v) {
      live_.ranges_at.push_back(static_cast<uint32_t>(live_.ranges.size()));
      if (has_sites(v)) add_ranges(v);
    }
    live_.ranges_at.push_back(static_cast<uint32_t>(live_.ranges.size()));
    return std::move(live_);
  }

 private:
  struct Site {
    uint32_t block;
    uint32_t end;  // where the use ends; for a definition: where the life starts
  };

  // Calls `visit(vreg, use point, site)` for every use and definition, in order of position.
  template <typename Visit>
  void each_use(Visit visit) {
    for (uint32_t b = 0; b < m_.blocks.size(); ++b) {
      const MBlock& block = m_.blocks[b];
      for (Vreg p : m_.params_of(block)) {
        visit(p, UsePoint{2 * block.begin, UINT32_MAX, 0.2f * block.frequency, Policy::kFixed},
              Site{b, 2 * block.begin});
      }
      for (uint32_t n = block.begin; n < block.end; ++n) visit_inst(b, n, visit);
      const MInst& t = m_.terminator(block);
      if (t.edge_count == 1) visit_args(b, t, visit);
    }
  }

  template <typename Visit>
  void visit_inst(uint32_t b, uint32_t n, Visit& visit) {
    const MInst& i = m_.insts[n];
    float f = m_.blocks[b].frequency;
    auto pass = [&](bool defs) {
      for (uint32_t k = 0; k < i.count(); ++k) {
        const Operand& o = m_.operands[i.operands_at + k];
        if (!o.vreg.valid() || (o.role == Role::kDef) != defs) continue;
        float weight = o.policy == Policy::kReg     ? f
                       : o.policy == Policy::kAny   ? 0.6f * f
                       : o.policy == Policy::kState ? 0
                                                    : 0.3f * f;
        bool late = o.role != Role::kUse;
        uint32_t pos = 2 * n + (late ? 1 : 0) + (defs && o.policy == Policy::kFixed ? 1 : 0);
        visit(o.vreg, UsePoint{pos, i.operands_at + k, weight, o.policy},
              Site{b, defs ? pos : pos + 1});
      }
    };
    pass(false);
    pass(true);
  }

  template <typename Visit>
  void visit_args(uint32_t b, const MInst& jump, Visit& visit) {
    const MEdge& e = m_.edges_of(jump)[0];
    uint32_t pos = 2 * (m_.blocks[b].end - 1);
    for (uint32_t k = 0; k < m_.blocks[e.to].params; ++k) {
      const MArg& a = m_.edge_args[e.args_at + k];
      if (!a.vreg.valid()) continue;
      visit(a.vreg, UsePoint{pos, UINT32_MAX, 0.2f * m_.blocks[b].frequency, Policy::kFixed},
            Site{b, pos + 1});
    }
  }

  // Uses of one vreg must be sorted by position. Within an instruction the insertion below moves
  // early uses before late ones.
  void collect_uses() {
    std::vector<uint32_t>& at = live_.uses_at;
    at.assign(m_.vregs.size() + 1, 0);
    each_use([&](Vreg v, const UsePoint&, const Site&) { ++at[v.index() + 1]; });
    for (size_t v = 1; v < at.size(); ++v) at[v] += at[v - 1];
    live_.uses.resize(at.back());
    sites_.resize(at.back());
    std::vector<uint32_t> next(at.begin(), at.end() - 1);
    each_use([&](Vreg v, const UsePoint& u, const Site& s) {
      uint32_t k = next[v.index()]++;
      live_.uses[k] = u;
      sites_[k] = s;
      for (; k > at[v.index()] && live_.uses[k - 1].pos > u.pos; --k) {
        std::swap(live_.uses[k], live_.uses[k - 1]);
        std::swap(sites_[k], sites_[k - 1]);
      }
    });
  }

  // Copies all predecessors into one array, because the search reads them for every batch.
  void collect_predecessors() {
    for (const MBlock& b : m_.blocks) {
      preds_at_.push_back(static_cast<uint32_t>(preds_.size()));
      preds_.insert(preds_.end(), b.preds.begin(), b.preds.end());
    }
    preds_at_.push_back(static_cast<uint32_t>(preds_.size()));
  }

  bool has_sites(uint32_t v) const { return live_.uses_at[v] != live_.uses_at[v + 1]; }
  const Site& definition(uint32_t v) const { return sites_[live_.uses_at[v]]; }
  const Site& last_site(uint32_t v) const { return sites_[live_.uses_at[v + 1] - 1]; }

  // Lists the vregs that are used outside the block of their definition. Those that reach about
  // equally far are neighbours, so that few batches go through many blocks.
  void choose_crossing() {
    constexpr uint32_t kReaches = 33;
    std::array<std::vector<uint32_t>, kReaches> by_reach;
    auto vregs = static_cast<uint32_t>(m_.vregs.size());
    found_of_.assign(vregs, kNotFound);
    for (uint32_t v = 0; v < vregs; ++v) {
      bool crosses = false;
      uint32_t first = live_.uses_at[v], last = live_.uses_at[v + 1];
      for (uint32_t k = first + 1; k < last; ++k) crosses |= sites_[k].block != sites_[first].block;
      if (!crosses) continue;
      by_reach[std::bit_width(last_site(v).block - definition(v).block)].push_back(v);
    }
    for (const auto& some : by_reach) crossing_.insert(crossing_.end(), some.begin(), some.end());
  }

  // Finds the ranges of up to 64 crossing vregs.
  void find(size_t first) {
    batch_ = std::span(crossing_).subspan(first, std::min(crossing_.size() - first, kBatch));
    touched_.clear();
    for (uint32_t k = 0; k < batch_.size(); ++k) {
      uint32_t b = definition(batch_[k]).block;
      touch(b);
      states_[b].defines |= uint64_t{1} << k;
    }
    for (uint32_t k = 0; k < batch_.size(); ++k) {
      uint32_t use = next_site_[k] = live_.uses_at[batch_[k]] + 1;
      for (; use < live_.uses_at[batch_[k] + 1]; ++use) {
        reach(sites_[use].block, uint64_t{1} << k);
      }
    }
    pass_on();
    collect_ranges();
  }

  // Adds the ranges of a vreg to the result.
  void add_ranges(uint32_t v) {
    uint32_t n = found_of_[v];
    if (n == kNotFound) {  // lives in one block
      uint32_t from = definition(v).end, to = from + 1;
      for (uint32_t k = live_.uses_at[v] + 1; k < live_.uses_at[v + 1]; ++k) {
        to = std::max(to, sites_[k].end);
      }
      live_.ranges.push_back({from, to});
      return;
    }
    auto at = static_cast<ptrdiff_t>(live_.ranges.size());
    for (; n != kNotFound; n = found_[n].before) live_.ranges.push_back(found_[n].range);
    std::reverse(live_.ranges.begin() + at, live_.ranges.end());
  }

  bool has_found(uint32_t k) const { return found_of_[batch_[k]] != kNotFound; }
  Range& last_range(uint32_t k) { return found_[found_of_[batch_[k]]].range; }
  void begin_range(uint32_t k, uint32_t at) {
    found_.push_back({{at, at}, found_of_[batch_[k]]});
    found_of_[batch_[k]] = static_cast<uint32_t>(found_.size() - 1);
  }

  void touch(uint32_t b) {
    if ((states_[b].defines | states_[b].into) == 0) touched_.push_back(b);
  }

  // Sorts the touched blocks. Most batches touch most blocks of a stretch, so the whole stretch is
  // taken. A batch of vregs that are used in rare blocks at the end touches few blocks in between,
  // and is sorted.
  void sort_touched() {
    auto [first, last] = std::ranges::minmax(touched_);
    if (last - first >= kSparse * touched_.size()) {
      std::ranges::sort(touched_);
      return;
    }
    touched_.resize(last - first + 1);
    std::iota(touched_.begin(), touched_.end(), first);
  }

  // Marks some vregs of the batch as live into block `b`: they are used in it, or live at its end.
  void reach(uint32_t b, uint64_t bits) {
    State& s = states_[b];
    bits &= ~(s.defines | s.into);
    if (bits == 0) return;
    if (s.pending == 0) work_.push_back(b);
    touch(b);
    s.into |= bits;
    s.pending |= bits;
  }

  // Passes liveness on to the predecessors, up to the definitions.
  void pass_on() {
    while (!work_.empty()) {
      uint32_t b = work_.back();
      work_.pop_back();
      uint64_t bits = std::exchange(states_[b].pending, 0);
      for (uint32_t k = preds_at_[b]; k < preds_at_[b + 1]; ++k) {
        states_[preds_[k]].out_of |= bits;
        reach(preds_[k], bits);
      }
    }
  }

  // Visits the touched blocks in order; `open` holds the vregs whose range reaches the start of the
  // next block.
  void collect_ranges() {
    uint64_t open = 0;
    uint32_t next = 0;  // the block after the one before
    sort_touched();
    for (uint32_t b : touched_) {
      if (b != next) {
        each(open, [&](uint32_t k) { last_range(k).to = 2 * m_.blocks[next].begin; });
        open = 0;
      }
      next = b + 1;
      State s = std::exchange(states_[b], {});
      uint32_t start = 2 * m_.blocks[b].begin;
      each(open & ~s.into, [&](uint32_t k) { last_range(k).to = start; });
      each(s.into & ~open, [&](uint32_t k) {
        bool joins = has_found(k) && last_range(k).to == start;
        if (!joins) begin_range(k, start);
      });
      each(s.defines, [&](uint32_t k) { begin_range(k, definition(batch_[k]).end); });
      open = (s.into | s.defines) & s.out_of;
      each((s.into | s.defines) & ~s.out_of, [&](uint32_t k) { end_in_block(k, b, start); });
    }
    each(open, [&](uint32_t k) { last_range(k).to = 2 * m_.blocks[next - 1].end; });
  }

  // Ends the last range of the vreg at its last use in the block.
  void end_in_block(uint32_t k, uint32_t b, uint32_t start) {
    Range& r = last_range(k);
    r.to = std::max(start, r.from) + 1;
    uint32_t& n = next_site_[k];
    for (uint32_t end = live_.uses_at[batch_[k] + 1]; n < end && sites_[n].block <= b; ++n) {
      if (sites_[n].block == b) r.to = std::max(r.to, sites_[n].end);
    }
  }

  template <typename Visit>
  static void each(uint64_t bits, Visit visit) {
    for (; bits != 0; bits &= bits - 1) visit(static_cast<uint32_t>(std::countr_zero(bits)));
  }

  // The state of a block for the vregs of one batch: bit k is the k-th of them.
  struct State {
    uint64_t defines = 0, into = 0, out_of = 0;
    uint64_t pending = 0;  // live into it, and not yet passed on to its predecessors
  };

  struct Found {
    Range range;
    uint32_t before;  // the range before this one of the same vreg, in found_
  };

  const MachineFunction& m_;
  LiveRanges live_;
  std::vector<Site> sites_;                   // parallel to live_.uses
  std::vector<uint32_t> preds_at_, preds_;    // by block
  std::vector<State> states_;                 // by block; empty between batches
  std::vector<uint32_t> crossing_;            // vregs
  std::span<const uint32_t> batch_;           // the current part of crossing_
  std::vector<uint32_t> touched_;             // blocks that the batch touches
  std::array<uint32_t, kBatch> next_site_{};  // by index in the batch, in sites_: the next to pass
  std::vector<uint32_t> work_;                // blocks with something pending
  std::vector<Found> found_;
  std::vector<uint32_t> found_of_;  // by vreg: the last range found, in found_
};

}  // namespace

LiveRanges find_live_ranges(const MachineFunction& m) { return RangeFinder(m).run(); }

}  // namespace uptier::jit::machine
