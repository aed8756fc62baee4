#include "jit/baseline/loop_probes.h"

#include <algorithm>

#include "sampler/loop_timer.h"

namespace uptier::jit::baseline {

LoopProbes::LoopProbes(const Function& f, const ProbePlan* plan, TargetAssembler& a)
    : f_(f), plan_(plan), a_(a) {
  if (plan != nullptr && !plan->loops.empty()) forest_ = find_loop_forest(f);
}

// Returns the offset of a loop's words, or kNone if the loop is not observed.
uint32_t LoopProbes::words_of(LoopId l) const {
  if (plan_ == nullptr || l.index() >= plan_->loops.size()) return ProbePlan::kNone;
  return plan_->loops[l.index()];
}

// A loop that is only counted has the same code as a timed one, so that the loops around it take
// the same time in either case; it is never drawn for timing.
uint32_t LoopProbes::extra_of(LoopId l) const {
  if (plan_->records == 0) return 0;
  uint32_t records = plan_->times[l.index()] ? plan_->records : 0;
  return sampler::LoopKey::pack(records, l == function_loop());
}

void LoopProbes::enter(LoopId l) {
  uint32_t at = words_of(l);
  if (at != ProbePlan::kNone) a_.enter_loop(at, extra_of(l));
}

void LoopProbes::leave(LoopId l) {
  uint32_t at = words_of(l);
  if (at != ProbePlan::kNone) a_.leave_loop(at, extra_of(l));
}

bool LoopProbes::crosses(Block from, Block to) const {
  if (!forest_) return false;
  LoopCrossing c = crossing(*forest_, from, to);
  auto observed = [&](LoopId l) { return words_of(l) != ProbePlan::kNone; };
  return (c.entered.valid() && observed(c.entered)) ||
         std::any_of(c.left.begin(), c.left.end(), observed);
}

void LoopProbes::cross(Block from, Block to) {
  if (!forest_) return;
  LoopCrossing c = crossing(*forest_, from, to);
  for (LoopId l : c.left) leave(l);
  if (c.entered.valid()) enter(c.entered);
}

void LoopProbes::leave_all(Block b) {
  if (!forest_) return;
  for (LoopId l = forest_->innermost[b.index()]; l.valid(); l = forest_->loop(l).parent) leave(l);
  leave(function_loop());
}

void LoopProbes::begin_ranges(Block b) {
  if (!forest_) return;
  auto& ranges = a_.tables().loop_ranges;
  if (ranges.empty()) {
    for (uint32_t l = 0; l < plan_->loops.size(); ++l) {
      if (plan_->loops[l] != ProbePlan::kNone) ranges.push_back({l, UINT32_MAX, 0});
    }
  }
  for (LoopRange& r : ranges) {
    LoopId l(r.loop);
    if (l == function_loop()) {
      r.begin = 0;
    } else if (r.begin == UINT32_MAX && forest_->contains(l, b)) {
      r.begin = a_.offset();
    }
  }
}

void LoopProbes::extend_ranges(Block b) {
  for (LoopRange& r : a_.tables().loop_ranges) {
    LoopId l(r.loop);
    if (l == function_loop() || forest_->contains(l, b)) r.end = a_.offset();
  }
}

}  // namespace uptier::jit::baseline
