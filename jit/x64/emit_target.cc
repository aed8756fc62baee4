// Targets of indirect calls, in instrumented copies.
#include "jit/code/probe_routines.h"
#include "jit/x64/emit_impl.h"
#include "sampler/site_tables.h"

namespace uptier::jit::x64 {

// As in baseline code (baseline/select_probe.cc): a hit of the first entry in line, the rest by a
// routine that keeps every register but r11.
//
//   mov r11, slab
//   cmp [r11 + key], target               slow: push shape; push target; push offset
//   jne slow                                    call routine
//   inc qword [r11 + count]                     jmp back
//   back:
void Emitter::count_target(const MInst& i) {
  Location slab = at(i, i.a);
  Gp target = gp_at(i, i.b);
  if (slab.is_reg()) {
    a_.mov(x86::r11, gp_at(i, i.a));
  } else {
    a_.mov(x86::r11, place(slab, 8));
  }
  auto shape = sampler::TableShape::unpack(static_cast<uint32_t>(i.disp), false);
  auto first = static_cast<int32_t>(i.imm + 8 * shape.entries_at());
  a_.cmp(x86::qword_ptr(x86::r11, first), target);
  target_calls_.push_back({b_.new_label(), b_.new_label(), &i});
  a_.jne(target_calls_.back().slow);
  a_.inc(x86::qword_ptr(x86::r11, first + 8));
  b_.bind(target_calls_.back().back);
}

void Emitter::target_calls() {
  auto routine = static_cast<uint32_t>(ProbeRoutine::kTarget);
  for (const TargetCall& t : target_calls_) {
    b_.bind(t.slow);
    a_.push(asmjit::imm(t.from->disp));
    a_.push(gp_at(*t.from, t.from->b));
    a_.push(asmjit::imm(static_cast<int32_t>(t.from->imm)));
    b_.call_address(in_.compile.helpers.probes[routine]);
    a_.jmp(t.back);
  }
}

}  // namespace uptier::jit::x64
