// Tracks, for each place (register or slot), the set of vregs whose value it holds. Where paths
// join, sets are intersected, until nothing changes; then every use is looked up. On an edge, a
// parameter is added to each set that holds its argument. The numbers of constants follow those of
// the vregs.
#include <algorithm>
#include <map>

#include "jit/regalloc/allocation.h"

namespace uptier::jit::machine {
namespace {

using Holds = std::map<uint32_t, std::vector<uint32_t>>;  // by Location::bits, sorted

class Checker {
 public:
  Checker(const MachineFunction& m, const Allocation& a)
      : m_(m), a_(a), in_(m.blocks.size()), seen_(m.blocks.size()) {}

  std::string run() {
    seen_[0] = true;
    std::vector<uint32_t> work{0};
    while (!work.empty()) {
      uint32_t b = work.back();
      work.pop_back();
      Holds state = in_[b];
      walk(b, state, false);
      const MInst& t = m_.terminator(m_.blocks[b]);
      for (const MEdge& e : m_.edges_of(t)) {
        if (enter(e, state)) work.push_back(e.to);
      }
    }
    for (uint32_t b = 0; b < m_.blocks.size() && problem_.empty(); ++b) {
      Holds state = in_[b];
      if (seen_[b]) walk(b, state, true);
    }
    return problem_;
  }

 private:
  uint32_t identity_of_constant(uint32_t c) const {
    return static_cast<uint32_t>(m_.vregs.size()) + c;
  }

  static void forget(Holds& s, uint32_t vreg) {
    for (auto& [place, set] : s) std::erase(set, vreg);
  }

  // Joins the state into the target's. Returns whether that changed it.
  bool enter(const MEdge& e, Holds s) {
    rename(e, s);
    if (!seen_[e.to]) {
      seen_[e.to] = true;
      in_[e.to] = std::move(s);
      return true;
    }
    bool changed = false;
    for (auto& [place, set] : in_[e.to]) {
      auto it = s.find(place);
      size_t before = set.size();
      std::erase_if(set, [&](uint32_t v) {
        return it == s.end() || !std::binary_search(it->second.begin(), it->second.end(), v);
      });
      changed |= set.size() != before;
    }
    return changed;
  }

  void rename(const MEdge& e, Holds& s) {
    auto params = m_.params_of(m_.blocks[e.to]);
    for (auto& [place, set] : s) {
      std::vector<uint32_t> more;
      for (uint32_t k = 0; k < params.size(); ++k) {
        const MArg& a = m_.edge_args[e.args_at + k];
        uint32_t id = a.vreg.valid() ? a.vreg.index() : identity_of_constant(a.constant);
        if (std::find(set.begin(), set.end(), id) != set.end()) more.push_back(params[k].index());
      }
      std::erase_if(set, [&](uint32_t v) {
        return std::any_of(params.begin(), params.end(), [&](Vreg p) { return p.index() == v; });
      });
      set.insert(set.end(), more.begin(), more.end());
      std::sort(set.begin(), set.end());
    }
  }

  void walk(uint32_t b, Holds& s, bool report) {
    const MBlock& block = m_.blocks[b];
    auto move = std::lower_bound(a_.moves.begin(), a_.moves.end(), block.begin,
                                 [](const Move& m, uint32_t gap) { return m.gap < gap; });
    // Definitions found in fixed places are known before the moves after their instruction.
    for (uint32_t n = block.begin; n < block.end; ++n) {
      while (move != a_.moves.end() && move->gap == n) move = do_moves(move, s);
      step(n, s, report);
    }
  }

  std::vector<Move>::const_iterator do_moves(std::vector<Move>::const_iterator first, Holds& s) {
    Holds before = s;
    auto m = first;
    for (; m != a_.moves.end() && m->gap == first->gap && m->phase == first->phase; ++m) {
      if (m->from.is_constant()) {
        s[m->to.bits()] = {identity_of_constant(m->from.index())};
      } else {
        s[m->to.bits()] = before[m->from.bits()];
      }
    }
    return m;
  }

  void step(uint32_t n, Holds& s, bool report) {
    const MInst& i = m_.insts[n];
    auto operands = m_.operands_of(i);
    if (report) {
      for (const Operand& o : operands) check_use(n, o, s);
    }
    RegMask lost = clobbers(i);
    for (unsigned r = 0; r < kRegCount; ++r) {
      if (lost & mask_of(r)) s.erase(Location::reg(r).bits());
    }
    for (const Operand& o : operands) {
      if (o.role != Role::kDef) continue;
      forget(s, o.vreg.index());
      Location at = o.policy == Policy::kFixed ? o.fixed : o.at;
      s[at.bits()] = {o.vreg.index()};
    }
    if (report) check_late(n, operands);
  }

  void check_use(uint32_t n, const Operand& o, const Holds& s) {
    if (o.role == Role::kDef) {
      if (o.policy == Policy::kReg && !o.at.is_reg()) fail(n, o, "is not defined in a register");
      return;
    }
    uint32_t id = o.vreg.valid() ? o.vreg.index() : identity_of_constant(o.constant);
    Location at = o.policy == Policy::kFixed ? o.fixed : o.at;
    if (o.policy == Policy::kReg && !at.is_reg()) fail(n, o, "is not in a register");
    auto it = s.find(at.bits());
    bool found = it != s.end() && std::binary_search(it->second.begin(), it->second.end(), id);
    if (!found) fail(n, o, "reads a place that holds something else");
  }

  // A late use must survive the definitions and clobbers of its own instruction.
  void check_late(uint32_t n, std::span<const Operand> operands) {
    RegMask lost = clobbers(m_.insts[n]);
    for (const Operand& u : operands) {
      if (u.role != Role::kLateUse) continue;
      if (u.at.is_reg() && (lost & mask_of(u.at.index()))) fail(n, u, "is clobbered too early");
      for (const Operand& d : operands) {
        bool same = d.role == Role::kDef && d.policy == Policy::kReg && d.at == u.at;
        if (same) fail(n, u, "is overwritten too early");
      }
    }
  }

  void fail(uint32_t n, const Operand& o, const char* what) {
    if (!problem_.empty()) return;
    problem_ =
        "instruction " + std::to_string(n) + ": v" + std::to_string(o.vreg.index()) + " " + what;
  }

  const MachineFunction& m_;
  const Allocation& a_;
  std::vector<Holds> in_;
  std::vector<bool> seen_;
  std::string problem_;
};

}  // namespace

std::string check_allocation(const MachineFunction& m, const Allocation& a) {
  return Checker(m, a).run();
}

}  // namespace uptier::jit::machine
