// Counters of control flow in instrumented copies.
//
//   block mode   at the block's probe: mov r11, [rbp - 8]; inc [r11 + offset]
//   edge mode    the same for each chord of the plan, where it runs once for the edge and no other:
//                  entry       in the prologue, behind the stack check
//                  return      before `leave`
//                  a -> b      at b's probe, if b has no other way in and no loop header;
//                              else along the edge: at the end of a, or in a stub on the way
//
// Wherever counting stands flags are dead, and r11 is nobody's. What the increment is depends on
// the plan's mode alone, see probe_plan.h.
#include "jit/baseline/selector.h"

namespace uptier::jit::baseline {

void Selector::plan_flow() {
  const ProbePlan* plan = request_.probes;
  if (!instrumented_ || plan == nullptr || plan->flow != FlowMode::kEdges) return;
  flow_.counts_edges = true;
  b_.tables().counts_edges = true;
  flow_.number = edge_numbers(f_);
  uint32_t real = 0;
  for (Block b : f_.layout) real += f_.terminator(b).edge_count;
  flow_.entry = plan->edges[real];
  flow_.at_return.assign(f_.blocks.size(), ProbePlan::kNone);
  flow_.at_start.assign(f_.blocks.size(), ProbePlan::kNone);
  flow_.along.assign(f_.edges.size(), ProbePlan::kNone);
  uint32_t next_return = real + 1;
  for (Block b : f_.layout) {
    if (f_.terminator(b).op == Opcode::kReturn) {
      flow_.at_return[b.index()] = plan->edges[next_return++];
    }
    for (const Edge& e : f_.successors(b)) place_counter(e, *plan);
  }
}

void Selector::place_counter(const Edge& e, const ProbePlan& plan) {
  auto index = static_cast<size_t>(&e - f_.edges.data());
  uint32_t offset = plan.edges[flow_.number[index] - 1];
  bool header = f_.inst(f_.block(e.to).insts[0]).op == Opcode::kLoopHeader;
  bool only_way = predecessors_[e.to.index()] == 1 && !header;
  (only_way ? flow_.at_start[e.to.index()] : flow_.along[index]) = offset;
}

bool Selector::counts_along(const Edge& e) const {
  if (!flow_.counts_edges) return false;
  return flow_.along[static_cast<size_t>(&e - f_.edges.data())] != ProbePlan::kNone;
}

// ---- Places -----------------------------------------------------------------------------------

void Selector::count_entry() {
  if (flow_.counts_edges) count(flow_.entry);
}

void Selector::count_block(SiteId site) {
  if (flow_.counts_edges) return count(flow_.at_start[f_.layout[site - 1].index()]);
  const ProbePlan* plan = request_.probes;
  if (plan == nullptr) return count(8 * (site - 1));
  count(site <= plan->blocks.size() ? plan->blocks[site - 1] : ProbePlan::kNone);
}

void Selector::count_along(const Edge& e) {
  if (counts_along(e)) count(flow_.along[static_cast<size_t>(&e - f_.edges.data())]);
}

void Selector::count_return() {
  if (flow_.counts_edges) count(flow_.at_return[current_.index()]);
}

// ---- Increments -------------------------------------------------------------------------------

void Selector::count(uint32_t offset) {
  if (offset == ProbePlan::kNone) return;
  CodeBuffer::LibrarysOwn own(b_);
  a_.mov(kScratch, x86::qword_ptr(x86::rbp, kSlabSlot));
  const ProbePlan* plan = request_.probes;
  CounterMode mode = plan == nullptr ? CounterMode::kPerThread : plan->counters;
  uint32_t width = plan != nullptr && plan->narrow ? 4 : 8;
  Mem at = x86::ptr(kScratch, static_cast<int32_t>(offset), width);
  switch (mode) {
    case CounterMode::kPerThread:
      if (width == 8) return static_cast<void>(a_.inc(at));
      a_.add(at, imm(1));
      a_.sbb(at, imm(0));
      return;
    case CounterMode::kRacing: return increment(at, false);
    case CounterMode::kInterlocked: return increment(at, true);
    case CounterMode::kScalable: return increment_scalable(offset, width);
    case CounterMode::kDual: increment(at, true); return increment_scalable(offset + width, width);
  }
}

//   narrow: cmp [at], full; jae done
//   [lock] inc [at]
void Selector::increment(const Mem& at, bool lock) {
  Label done = b_.new_label();
  bool narrow = at.size() == 4;
  if (narrow) {
    a_.cmp(at, imm(static_cast<int32_t>(ProbePlan::kNarrowFull)));
    a_.short_().jae(done);
  }
  if (lock) a_.lock();
  a_.inc(at);
  if (narrow) b_.bind(done);
}

//   cmp [at], 2^13; jae slow; lock inc [at]; resume:
//   behind the body: slow: add r11, offset; call scalable_count; jmp resume
void Selector::increment_scalable(uint32_t offset, uint32_t width) {
  CounterSlow s{b_.new_label(), b_.new_label(), offset};
  Mem at = x86::ptr(kScratch, static_cast<int32_t>(offset), width);
  a_.cmp(at, imm(ProbePlan::kScalableExact));
  a_.jae(s.slow);
  a_.lock().inc(at);
  b_.bind(s.resume);
  counter_slow_.push_back(s);
}

void Selector::emit_counter_slow() {
  CodeBuffer::LibrarysOwn own(b_);
  const Helpers& h = in_.helpers;
  for (const CounterSlow& s : counter_slow_) {
    b_.bind(s.slow);
    if (s.offset != 0) a_.add(kScratch, imm(s.offset));
    // In the code space: r11 is taken, so there is no other way to get there.
    b_.rel32({0xe8}, request_.probes->narrow ? h.scalable_count32 : h.scalable_count64);
    a_.jmp(s.resume);
  }
}

}  // namespace uptier::jit::baseline
