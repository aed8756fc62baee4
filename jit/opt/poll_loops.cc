#include "jit/opt/poll_loops.h"

#include <algorithm>

#include "jit/analysis/frequencies.h"
#include "jit/analysis/loop_forest.h"

namespace uptier::jit {
namespace {

constexpr float kCallWork = 48;
constexpr float kLongRound = 48;

bool is_call(const Inst& i) {
  Shape s = info(i.op).shape;
  return s == Shape::kCall || s == Shape::kCallIndirect || s == Shape::kCallHost;
}

float work_of(const Function& f, Block b) {
  float work = 0;
  for (InstId id : f.block(b).insts) {
    const Inst& i = f.inst(id);
    bool free = i.op == Opcode::kConst || i.op == Opcode::kProbe || i.op == Opcode::kLoopHeader ||
                i.op == Opcode::kFrameState;
    work += is_call(i) ? kCallWork : free ? 0 : 1;
  }
  return work;
}

bool calls(const Function& f, const LoopForest::Loop& loop) {
  return std::ranges::any_of(loop.blocks, [&](Block b) {
    return std::ranges::any_of(f.block(b).insts, [&](InstId i) { return is_call(f.inst(i)); });
  });
}

}  // namespace

std::vector<LoopId> loops_that_poll(const Function& f, std::span<const uint64_t> counts, bool all) {
  std::vector<LoopId> polling;
  if (f.loop_count == 0) return polling;
  LoopForest forest = find_loop_forest(f);
  for (uint32_t l = 0; l < f.loop_count; ++l) {
    const LoopForest::Loop& loop = forest.loops[l];
    bool may = loop.header.valid() && (all || loop.height != 0 || calls(f, loop));
    if (may) polling.push_back(LoopId(l));
  }
  if (polling.empty() || all) return polling;
  ControlFlow control = analyze_control_flow(f);
  Frequencies q = estimate_frequencies(f, control, find_loops(f, control), BlockCounts(counts));
  std::erase_if(polling, [&](LoopId l) {
    float work = 0;
    for (Block b : forest.loop(l).blocks) work += q.at(b) * work_of(f, b);
    return work < kLongRound * q.at(forest.loop(l).header);
  });
  return polling;
}

}  // namespace uptier::jit
