#include "jit/x64/live_ranges.h"

#include <algorithm>

namespace uptier::jit::x64 {
namespace {

class RangeFinder {
 public:
  explicit RangeFinder(const MachineFunction& m) : m_(m) {}

  LiveRanges run() {
    collect_uses();
    size_t blocks = m_.blocks.size();
    into_.assign(blocks, UINT32_MAX);
    out_of_.assign(blocks, UINT32_MAX);
    collect_predecessors();
    auto vregs = static_cast<uint32_t>(m_.vregs.size());
    live_.ranges_at.reserve(vregs + 1);
    for (uint32_t v = 0; v < vregs; ++v) {
      live_.ranges_at.push_back(static_cast<uint32_t>(live_.ranges.size()));
      find(v);
    }
    live_.ranges_at.push_back(static_cast<uint32_t>(live_.ranges.size()));
    return std::move(live_);
  }

 private:
  struct Site {
    uint32_t block;
    uint32_t end;  // how far the use reaches; a definition: where it starts
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

  // Uses of one vreg must be sorted by position: within an instruction early ones come before late
  // ones by a final sort of neighbours.
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

  // Side by side, because the search goes through them for every vreg.
  void collect_predecessors() {
    for (const MBlock& b : m_.blocks) {
      preds_at_.push_back(static_cast<uint32_t>(preds_.size()));
      preds_.insert(preds_.end(), b.preds.begin(), b.preds.end());
    }
    preds_at_.push_back(static_cast<uint32_t>(preds_.size()));
  }

  void find(uint32_t v) {
    uint32_t first = live_.uses_at[v], last = live_.uses_at[v + 1];
    if (first == last) return;
    const Site& def = sites_[first];
    blocks_.assign(1, def.block);
    for (uint32_t k = first + 1; k < last; ++k) reach(v, def.block, sites_[k].block);
    sort_blocks(v);
    uint32_t k = first + 1;
    for (uint32_t b : blocks_) {
      const MBlock& block = m_.blocks[b];
      uint32_t from = b == def.block ? def.end : 2 * block.begin;
      uint32_t to = from + 1;
      for (; k < last && sites_[k].block == b; ++k) to = std::max(to, sites_[k].end);
      if (out_of_[b] == v) to = 2 * block.end;
      add_range(v, from, to);
    }
  }

  // A vreg that lives nearly everywhere is found faster by asking every block.
  void sort_blocks(uint32_t v) {
    if (blocks_.size() < 3) return;
    auto [least, most] = std::minmax_element(blocks_.begin() + 1, blocks_.end());
    uint32_t first = *least, last = *most;
    if (last - first >= 8 * blocks_.size()) return std::sort(blocks_.begin() + 1, blocks_.end());
    blocks_.resize(1);
    for (uint32_t b = first; b <= last; ++b) {
      if (into_[b] == v) blocks_.push_back(b);
    }
  }

  void add_range(uint32_t v, uint32_t from, uint32_t to) {
    bool joins = live_.ranges.size() > live_.ranges_at[v] && live_.ranges.back().to == from;
    if (joins) {
      live_.ranges.back().to = to;
    } else {
      live_.ranges.push_back({from, to});
    }
  }

  // Marks the blocks from the use up to the definition.
  void reach(uint32_t v, uint32_t def, uint32_t use) {
    if (use == def || into_[use] == v) return;
    work_.push_back(use);
    into_[use] = v;
    while (!work_.empty()) {
      uint32_t b = work_.back();
      work_.pop_back();
      blocks_.push_back(b);
      for (uint32_t k = preds_at_[b]; k < preds_at_[b + 1]; ++k) {
        uint32_t p = preds_[k];
        out_of_[p] = v;
        if (p == def || into_[p] == v) continue;
        into_[p] = v;
        work_.push_back(p);
      }
    }
  }

  const MachineFunction& m_;
  LiveRanges live_;
  std::vector<Site> sites_;                 // beside live_.uses
  std::vector<uint32_t> preds_at_, preds_;  // by block
  std::vector<uint32_t> into_;              // by block: the last vreg found live into it
  std::vector<uint32_t> out_of_;            // by block: the last vreg found live out of it
  std::vector<uint32_t>
      blocks_;  // of the vreg at hand: the definition's, then those it is live into
  std::vector<uint32_t> work_;
};

}  // namespace

LiveRanges find_live_ranges(const MachineFunction& m) { return RangeFinder(m).run(); }

}  // namespace uptier::jit::x64
