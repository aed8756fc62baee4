#include "jit/frontend/branch_probes.h"

#include <algorithm>

#include "jit/analysis/short_branches.h"
#include "jit/frontend/select_probes.h"

namespace uptier::jit {
namespace {

bool is_constant(const Function& f, Value v) {
  InstId i = f.value(v).inst;
  return i.valid() && f.inst(i).op == Opcode::kConst;
}

// Returns whether the branch has a probe, or a `select` on the same condition right before it has
// one.
bool has_probe(const Function& f, Block b) {
  const auto& insts = f.block(b).insts;
  if (insts.size() < 2) return false;
  const Inst& last = f.inst(insts[insts.size() - 2]);
  return counts_turns(last) && f.args(last)[0] == f.args(f.terminator(b))[0];
}

}  // namespace

std::vector<Block> observed_branches(const Function& f, const LoopForest& forest, size_t most) {
  std::vector<uint32_t> arrivals = count_arrivals(f);
  std::vector<Block> found;
  for (Block b : f.layout) {
    if (!short_branch(f, b, arrivals)) continue;
    if (!is_constant(f, f.args(f.terminator(b))[0])) found.push_back(b);
  }
  if (found.size() <= most) return found;
  auto depth = [&](Block b) {
    LoopId l = forest.innermost[b.index()];
    return l.valid() ? forest.loop(l).depth + 1 : 0;
  };
  std::vector<Block> inner = found;
  std::ranges::stable_sort(inner, std::greater<>{}, depth);
  inner.resize(most);
  std::erase_if(found, [&](Block b) { return std::ranges::find(inner, b) == inner.end(); });
  return found;
}

void place_branch_probes(Function& f, const LoopForest& forest) {
  std::vector<Block> observed = observed_branches(f, forest);
  for (Block b : observed) {
    if (has_probe(f, b)) continue;
    Inst probe{.op = Opcode::kProbe,
               .flags = kProbeOwn | kProbeTurns | kProbeOfBranch,
               .aux = ++f.site_count};
    probe.args = f.make_list({{f.args(f.terminator(b))[0]}});
    probe.imm = static_cast<uint64_t>(ProbeKind::kValue);
    InstId made = f.add_inst(probe, Type::kNone);
    auto& insts = f.block(b).insts;
    insts.insert(insts.end() - 1, made);
  }
}

}  // namespace uptier::jit
