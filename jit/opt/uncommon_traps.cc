// Uncommon traps. A block that no sample ran becomes a side exit. The blocks after it disappear,
// and with them the values that they kept alive, joined or made unknown.
//
//   b7 (count 0):  ...                 b7:  guard 0, unreached [live]
//                  jump b9      ->          trap unreachable
//
// A block that ends in a trap is small and cold already, and stays.
#include "jit/opt/uncommon_traps.h"

#include "jit/frontend/block_exits.h"
#include "jit/opt/passes.h"

namespace uptier::jit {
namespace {

class ColdPruner {
 public:
  ColdPruner(Function& f, const DeoptContext& c, const ColdBlocks& cold)
      : f_(f), cold_(cold), exits_(f, c) {}

  uint32_t run() {
    std::vector<Block> frontier = find_frontier();
    for (Block b : frontier) replace(b);
    // With a loop to enter at, the entry is added later, so reachability is not known yet.
    if (!frontier.empty() && !cold_.entered_at.valid()) remove_unreachable(f_);
    return static_cast<uint32_t>(frontier.size());
  }

 private:
  bool is_entered(Block b) const {
    const Inst& first = f_.inst(f_.block(b).insts.front());
    return first.op == Opcode::kLoopHeader && cold_.entered_at.valid() &&
           first.aux == cold_.entered_at.index();
  }

  bool is_cold(Block b) const {
    uint32_t k = exits_.position(b);
    bool never = k < cold_.counts.size() && cold_.counts[k] == 0;
    bool kept = k < cold_.kept.size() && cold_.kept[k] != 0;
    return never && !kept && b != f_.entry() && !is_entered(b) &&
           f_.terminator(b).op != Opcode::kTrap;
  }

  // Finds the cold blocks that can be reached without passing another cold block.
  std::vector<Block> find_frontier() {
    std::vector<bool> seen(f_.blocks.size());
    std::vector<Block> work, frontier;
    auto reach = [&](Block b) {
      if (seen[b.index()]) return;
      seen[b.index()] = true;
      (is_cold(b) ? frontier : work).push_back(b);
    };
    reach(f_.entry());
    for (Block b : f_.layout) {
      if (is_entered(b)) reach(b);
    }
    while (!work.empty()) {
      Block b = work.back();
      work.pop_back();
      for (const Edge& e : f_.successors(b)) reach(e.to);
    }
    return frontier;
  }

  // The block's probe stays, because it attributes the exit.
  void replace(Block b) {
    std::vector<InstId> insts;
    for (InstId i : f_.block(b).insts) {
      const Inst& inst = f_.inst(i);
      bool probe = inst.op == Opcode::kProbe && probe_kind(inst) == ProbeKind::kBlock;
      if (probe) insts.push_back(i);
    }
    exits_.add(b, GuardReason::kUnreached, false, insts);
    InstId end = f_.add_inst(
        {.op = Opcode::kTrap, .aux = static_cast<uint32_t>(TrapCode::kUnreachable)}, Type::kNone);
    insts.push_back(end);
    f_.block(b).insts = std::move(insts);
  }

  Function& f_;
  const ColdBlocks& cold_;
  BlockExits exits_;
};

}  // namespace

uint32_t uncommon_traps(Function& f, const DeoptContext& c, const ColdBlocks& cold) {
  if (cold.counts.empty()) return 0;
  return ColdPruner(f, c, cold).run();
}

}  // namespace uptier::jit
