// Probes of sites and loops, in the instrumented copy.
//
// The most common case of a table, a hit of its first entry:
//
//   mov r11, [rbp + slab]
//   cmp [r11 + key], value
//   jne slow                  after the body: call the routine, which keeps every register
//   inc qword [r11 + count]
//
// Probes of loops:
//
//   enter:  inc [entries]; dec qword [state]; js slow
//   header: inc [iterations]
//   leave:  cmp dword [entries on the stack], 0; jne slow
//
// All preserve every register but r11, and change the flags. So they may stand wherever no flags
// are live.
#include "jit/x64/baseline_assembler.h"

#include "jit/ir/turns.h"
#include "jit/x64/range_probe.h"
#include "sampler/loop_timer.h"
#include "sampler/site_counts.h"

namespace uptier::jit::x64 {
namespace {

using sampler::TableShape;

// A condition of a selection has no table:
//
//   xor now, now; test value, value; setnz now
//   mov r11, [rbp + slab]
//   mov pair, [r11 + last]; mov [r11 + last], now
//   lea pair, [now + 2 * pair]
//   inc qword [r11 + counts + 8 * pair]
void count_turn(Assembler& a, ValueCache& values, uint32_t offset, const Gp& value) {
  Gp now = values.new_gp(), pair = values.new_gp();
  Mem last = x86::qword_ptr(kScratch, static_cast<int32_t>(offset));
  a.xor_(now.r32(), now.r32());
  a.test(value.r32(), value.r32());
  a.setnz(now.r8());
  a.mov(kScratch, x86::qword_ptr(x86::rbp, kSlabSlot));
  a.mov(pair, last);
  a.mov(last, now);
  a.lea(pair, x86::ptr(now, pair, 1));
  a.inc(x86::qword_ptr(kScratch, pair, 3, static_cast<int32_t>(offset + 8 * kTurnCounts)));
}

}  // namespace

// ---- Sites ------------------------------------------------------------------------------------

void BaselineAssembler::observe(const ProbePlan::Site& s, Value v, uint32_t number, uint32_t tag) {
  auto load = [&] { a_.mov(kScratch, slab()); };
  if (s.kind == ProbeKind::kHit) {
    load();
    a_.inc(slab_word(s.offset));
    return;
  }
  if (s.kind == ProbeKind::kRange) {
    count_in_range(s, v);
    return values_.use(v);
  }
  Gp value = observed(v);
  switch (s.kind) {
    case ProbeKind::kCounter:
      load();
      a_.add(slab_word(s.offset), value);
      break;
    case ProbeKind::kGauge:
      load();
      a_.mov(slab_word(s.offset), value);
      break;
    case ProbeKind::kLog: log(s, value, number, tag); break;
    default: count_in_table(s, value);
  }
  values_.use(v);
}

Gp BaselineAssembler::observed(Value v) {
  Type t = values_.type_of(v);
  if (t == Type::kI64 || t == Type::kRef) return values_.gp_of(v);
  if (t == Type::kI32) {
    Gp from = values_.gp_of(v), to = values_.new_gp();
    a_.movsxd(to, from.r32());
    return to;
  }
  Xmm from = values_.xmm_of(v);
  Gp to = values_.new_gp();
  if (t == Type::kF32) {
    a_.cvtss2sd(kXmmScratch, from);
    from = kXmmScratch;
  }
  a_.movq(to, from);
  return to;
}

void BaselineAssembler::count_in_table(const ProbePlan::Site& s, const Gp& value) {
  if (s.top == 0) {
    count_turn(a_, values_, s.offset, value);
    return;
  }
  TableShape shape{s.top, s.kind == ProbeKind::kValue, probes_->recent};
  uint32_t first = s.offset + 8 * shape.entries_at();
  a_.mov(kScratch, slab());
  a_.cmp(slab_word(first), value);
  ProbeRoutine r = shape.sums ? ProbeRoutine::kValue : ProbeRoutine::kTarget;
  probe_slow(r, s.offset, value.id(), shape.packed(), x86::CondCode::kNE);
  a_.inc(slab_word(first + 8));
  b_.bind(probe_slow_.back().resume);
}

void BaselineAssembler::count_in_range(const ProbePlan::Site& s, Value v) {
  Gp from = observed(v), rank = values_.new_gp();
  a_.mov(rank, from);
  a_.btc(rank, imm(63));
  a_.mov(kScratch, slab());
  jit::count_in_range(b_, a_, rank, [&](uint32_t n) { return slab_word(s.offset + 8 * n); });
}

void BaselineAssembler::log(const ProbePlan::Site& s, const Gp& value, uint32_t number,
                            uint32_t tag) {
  emit_constant(b_, kScratch, uint64_t{in_.method.number()} << 32 | number);
  a_.push(kScratch);
  a_.mov(kScratch, slab());
  call_probe(ProbeRoutine::kLog, s.offset, value.id(), tag);
}

// ---- Loops ------------------------------------------------------------------------------------

void BaselineAssembler::enter_loop(uint32_t at, uint32_t extra) {
  if (at == ProbePlan::kNone) return;
  a_.mov(kScratch, slab());
  a_.inc(slab_word(at + 8 * sampler::kLoopEntries));
  if (probes_->records == 0) return;
  a_.dec(slab_word(at + 8 * sampler::kLoopState));
  probe_slow(ProbeRoutine::kLoopEnter, at, Gp::kIdBp, extra, x86::CondCode::kS);
  b_.bind(probe_slow_.back().resume);
}

void BaselineAssembler::leave_loop(uint32_t at, uint32_t extra) {
  if (at == ProbePlan::kNone || probes_->records == 0) return;
  a_.mov(kScratch, slab());
  Mem open = slab_word(at + 8 * sampler::kLoopState + 4);
  open.setSize(4);
  a_.cmp(open, imm(0));
  probe_slow(ProbeRoutine::kLoopLeave, at, Gp::kIdBp, extra, x86::CondCode::kNE);
  b_.bind(probe_slow_.back().resume);
}

void BaselineAssembler::count_iteration(uint32_t at) {
  if (at == ProbePlan::kNone) return;
  a_.mov(kScratch, slab());
  a_.inc(slab_word(at + 8 * sampler::kLoopIterations));
}

// Without sites both copies have the same frame. Probes that read values change which values are in
// registers, so either copy may spill more than the other. A plain copy has the same bytes with and
// without a plan, so it sets up its own frame in any case.
bool BaselineAssembler::frames_differ() const {
  return !in_.instrumented || (probes_ != nullptr && probes_->has_sites());
}

// Arrives from another copy, whose frame may be smaller or larger. No register holds a value. The
// slab is in r11.
void BaselineAssembler::arrive_in_loops() {
  if (!frames_differ()) return;
  a_.lea(x86::rsp, x86::ptr(x86::rbp, INT32_MIN));  // patched by finish()
  arrive_patches_.push_back(b_.offset() - 4);
  if (in_.check_stack) check_stack();
  if (!in_.observes_loops) return;
  a_.mov(kScratch, slab());
  call_probe(ProbeRoutine::kLoopArrive, 0, Gp::kIdBp, 0);
}

// ---- Calls of routines ------------------------------------------------------------------------

// Jumps to the slow path if the condition holds. It returns to `resume` of the last entry. The slab
// is in r11.
void BaselineAssembler::probe_slow(ProbeRoutine r, uint32_t offset, uint32_t value, uint32_t extra,
                                   x86::CondCode when) {
  probe_slow_.push_back({b_.new_label(), b_.new_label(), r, offset, value, extra});
  a_.j(when, probe_slow_.back().slow);
}

// See code/probe_routines.h. The push extends the sign of an immediate; the functions read 32 bits.
void BaselineAssembler::call_probe(ProbeRoutine r, uint32_t offset, uint32_t value,
                                   uint32_t extra) {
  a_.push(imm(static_cast<int32_t>(extra)));
  a_.push(x86::gpq(value));
  a_.push(imm(static_cast<int32_t>(offset)));
  b_.call_address(in_.helpers.probes[static_cast<uint32_t>(r)]);
}

void BaselineAssembler::emit_probe_slow() {
  for (const ProbeSlow& p : probe_slow_) {
    b_.bind(p.slow);
    call_probe(p.routine, p.offset, p.value, p.extra);
    a_.jmp(p.resume);
  }
}

}  // namespace uptier::jit::x64
