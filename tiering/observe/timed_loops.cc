#include "tiering/observe/timed_loops.h"

#include <cassert>

#include "jit/analysis/loop_forest.h"
#include "profile/data/loop_nest.h"

namespace uptier::tiering {

namespace {

uint32_t header_location(const jit::Function& f, Block header) {
  for (jit::InstId i : f.block(header).insts) {
    if (f.inst(i).op == Opcode::kLoopHeader) return f.inst(i).loc;
  }
  return 0;
}

}  // namespace

std::vector<TimedLoop> timed_loops(const jit::Function& f, const jit::ProbePlan& plan) {
  auto timed = [&](uint32_t loop) { return plan.loops[loop] != jit::ProbePlan::kNone; };
  std::vector<TimedLoop> out;
  std::vector<uint32_t> place(plan.loops.size(), UINT32_MAX);
  uint32_t count = 0;
  for (uint32_t l = 0; l < plan.loops.size(); ++l) {
    if (timed(l)) place[l] = count++;
  }
  if (count == 0) return out;
  jit::LoopForest forest = jit::find_loop_forest(f);
  uint32_t body = f.loop_count;
  for (uint32_t l = 0; l < body; ++l) {
    if (!timed(l)) continue;
    const jit::LoopForest::Loop& loop = forest.loops[l];
    LoopId up = loop.parent;
    while (up.valid() && !timed(up.index())) up = forest.loop(up).parent;
    assert(!up.valid() || place[up.index()] != UINT32_MAX);
    out.push_back({LoopId(l), loop.parent, loop.depth, loop.height, header_location(f, loop.header),
                   place[up.valid() ? up.index() : body]});
  }
  if (timed(body)) out.push_back({});
  return out;
}

void settle_loops(const Method& m, double off, MethodProfile& p) {
  const std::vector<TimedLoop>& timed = m.shape->timed_loops;
  if (timed.empty()) return;
  std::vector<profile::LoopPlace> places;
  for (const TimedLoop& t : timed) {
    const uint32_t loop = t.loop.valid() ? t.loop.index() : m.shape->loop_count;
    places.push_back({loop + 1, t.within});
  }
  profile::settle_loops(p, places, off);
}

}  // namespace uptier::tiering
