// Counters of control flow in instrumented copies: mov r11, [rbp - 8]; inc [r11 + offset].
//
// At a counter, the flags are dead and r11 holds nothing. The plan's mode alone determines the form
// of the increment, see probes/probe_plan.h.
#include "jit/x64/baseline_assembler.h"

#include "sampler/context.h"

namespace uptier::jit::x64 {

void BaselineAssembler::load_slab() {
  a_.mov(kScratch, b_.method_word(kScratch, in_.method, sampler::kSlabOffset, 8));
  b_.method_word_used();
  a_.mov(slab(), kScratch);
}

void BaselineAssembler::count(uint32_t offset) {
  if (offset == ProbePlan::kNone) return;
  CodeBuffer::LibrarysOwn own(b_);
  a_.mov(kScratch, slab());
  const ProbePlan* plan = in_.plan;
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
void BaselineAssembler::increment(const Mem& at, bool lock) {
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
//   after the body: slow: add r11, offset; call scalable_count; jmp resume
void BaselineAssembler::increment_scalable(uint32_t offset, uint32_t width) {
  CounterSlow s{b_.new_label(), b_.new_label(), offset};
  Mem at = x86::ptr(kScratch, static_cast<int32_t>(offset), width);
  a_.cmp(at, imm(ProbePlan::kScalableExact));
  a_.jae(s.slow);
  a_.lock().inc(at);
  b_.bind(s.resume);
  counter_slow_.push_back(s);
}

void BaselineAssembler::emit_counter_slow() {
  CodeBuffer::LibrarysOwn own(b_);
  const Helpers& h = in_.helpers;
  for (const CounterSlow& s : counter_slow_) {
    b_.bind(s.slow);
    if (s.offset != 0) a_.add(kScratch, imm(s.offset));
    // The routine is in the code space, so rel32 reaches it. r11 is taken and cannot carry its
    // address.
    b_.rel32({0xe8}, in_.plan->narrow ? h.scalable_count32 : h.scalable_count64);
    a_.jmp(s.resume);
  }
}

}  // namespace uptier::jit::x64
