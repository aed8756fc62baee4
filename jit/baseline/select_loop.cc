// Loop probes, in the instrumented copy: on the edges that enter and leave a loop, at its header,
// and where the function is entered and returns.
//
//   enter:  inc [entries]; dec qword [state]; js slow
//   header: inc [iterations]
//   leave:  cmp dword [entries on the stack], 0; jne slow
//
// All keep every register but r11 and the flags, so they may stand wherever no flags wait.
#include <algorithm>

#include "jit/baseline/selector.h"
#include "sampler/loop_timer.h"

namespace uptier::jit::baseline {

uint32_t Selector::loop_words(LoopId l) const {
  if (probes_ == nullptr || l.index() >= probes_->loops.size()) return ProbePlan::kNone;
  return probes_->loops[l.index()];
}

// A loop that is only counted has the code of one that is timed, so that those around it take as
// long in either case; it is never drawn.
uint32_t Selector::loop_extra(LoopId l) const {
  uint32_t records = probes_->times[l.index()] ? probes_->records : 0;
  return sampler::LoopKey::pack(records, l == function_loop());
}

bool Selector::crosses_loops(const Edge& e) const {
  if (!forest_) return false;
  LoopCrossing c = crossing(*forest_, current_, e.to);
  auto observed = [&](LoopId l) { return loop_words(l) != ProbePlan::kNone; };
  return (c.entered.valid() && observed(c.entered)) ||
         std::any_of(c.left.begin(), c.left.end(), observed);
}

void Selector::cross_loops(const Edge& e) {
  if (!forest_) return;
  LoopCrossing c = crossing(*forest_, current_, e.to);
  for (LoopId l : c.left) leave_loop(l);
  if (c.entered.valid()) enter_loop(c.entered);
}

void Selector::enter_loop(LoopId l) {
  uint32_t at = loop_words(l);
  if (at == ProbePlan::kNone) return;
  a_.mov(kScratch, x86::qword_ptr(x86::rbp, kSlabSlot));
  a_.inc(slab_word(at + 8 * sampler::kLoopEntries));
  if (probes_->records == 0) return;
  a_.dec(slab_word(at + 8 * sampler::kLoopState));
  uint32_t extra = loop_extra(l);
  probe_slow(ProbeRoutine::kLoopEnter, at, Gp::kIdBp, extra, x86::CondCode::kS);
  b_.bind(probe_slow_.back().resume);
}

void Selector::leave_loop(LoopId l) {
  uint32_t at = loop_words(l);
  if (at == ProbePlan::kNone || probes_->records == 0) return;
  a_.mov(kScratch, x86::qword_ptr(x86::rbp, kSlabSlot));
  Mem open = slab_word(at + 8 * sampler::kLoopState + 4);
  open.setSize(4);
  a_.cmp(open, imm(0));
  probe_slow(ProbeRoutine::kLoopLeave, at, Gp::kIdBp, loop_extra(l), x86::CondCode::kNE);
  b_.bind(probe_slow_.back().resume);
}

// A return, inside of whatever loops it stands.
void Selector::leave_all_loops() {
  if (!forest_) return;
  for (LoopId l = forest_->innermost[current_.index()]; l.valid(); l = forest_->loop(l).parent) {
    leave_loop(l);
  }
  leave_loop(function_loop());
}

void Selector::count_iteration(LoopId l) {
  uint32_t at = loop_words(l);
  if (at == ProbePlan::kNone) return;
  a_.mov(kScratch, x86::qword_ptr(x86::rbp, kSlabSlot));
  a_.inc(slab_word(at + 8 * sampler::kLoopIterations));
}

// Without sites both copies have the same frame. Probes that read values change what is in registers
// when, so that either copy may spill more than the other. A plain copy has the same bytes with and
// without a plan, so it takes its own frame in any case.
bool Selector::frames_differ() const {
  return !instrumented_ || (probes_ != nullptr && probes_->has_sites());
}

// From another copy, whose frame may be smaller or larger; no register holds a value. The slab is in
// r11.
void Selector::arrive_in_loops() {
  if (!frames_differ()) return;
  a_.lea(x86::rsp, x86::ptr(x86::rbp, INT32_MIN));  // patched by finish()
  arrive_patches_.push_back(b_.offset() - 4);
  if (check_stack_) check_stack();
  if (!forest_) return;
  a_.mov(kScratch, x86::qword_ptr(x86::rbp, kSlabSlot));
  call_probe(ProbeRoutine::kLoopArrive, 0, Gp::kIdBp, 0);
}

// ---- Where the code of each loop lies -----------------------------------------------------------

void Selector::begin_ranges(Block b) {
  if (!forest_) return;
  auto& ranges = b_.tables().loop_ranges;
  if (ranges.empty()) {
    for (uint32_t l = 0; l < probes_->loops.size(); ++l) {
      if (probes_->loops[l] != ProbePlan::kNone) ranges.push_back({l, UINT32_MAX, 0});
    }
  }
  for (LoopRange& r : ranges) {
    LoopId l(r.loop);
    if (l == function_loop()) {
      r.begin = 0;
    } else if (r.begin == UINT32_MAX && forest_->contains(l, b)) {
      r.begin = b_.offset();
    }
  }
}

void Selector::extend_ranges(Block b) {
  for (LoopRange& r : b_.tables().loop_ranges) {
    LoopId l(r.loop);
    if (l == function_loop() || forest_->contains(l, b)) r.end = b_.offset();
  }
}

}  // namespace uptier::jit::baseline
