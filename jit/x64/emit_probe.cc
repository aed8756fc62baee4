// Counters and other probes in instrumented copies. As in baseline code (x64/baseline_probe.cc),
// but values are live in registers, so the routines preserve all of them but r11.
#include "jit/code/probe_routines.h"
#include "jit/x64/emit_impl.h"
#include "jit/x64/range_probe.h"
#include "sampler/context.h"
#include "sampler/site_counts.h"

namespace uptier::jit::x64 {

using asmjit::imm;

namespace {

ProbeKind kind_of(const MInst& i) { return static_cast<ProbeKind>(i.sub); }
int32_t offset_of(const MInst& i) { return static_cast<int32_t>(static_cast<uint32_t>(i.imm)); }
int32_t site_of(const MInst& i) { return static_cast<int32_t>(i.imm >> 32); }

}  // namespace

void Emitter::load_slab(const Gp& d) {
  CodeBuffer::LibrarysOwn own(b_);
  a_.mov(d, b_.method_word(d, in_.compile.method, sampler::kOptimizedSlabOffset, 8));
  b_.method_word_used();
}

// Returns the register that holds the slab: r11 if the slab's address is in a slot.
Gp Emitter::slab_base(const MInst& i) {
  Location slab = at(i, i.a);
  if (slab.is_reg()) return gp_at(i, i.a);
  a_.mov(x86::r11, place(slab, 8));
  return x86::r11;
}

void Emitter::slab_to_scratch(const MInst& i) {
  Gp base = slab_base(i);
  if (base.id() != x86::r11.id()) a_.mov(x86::r11, base);
}

void Emitter::count(const MInst& i) {
  CodeBuffer::LibrarysOwn own(b_);
  Gp base = slab_base(i);
  a_.inc(x86::qword_ptr(base, offset_of(i)));
}

void Emitter::tally(const MInst& i) {
  CodeBuffer::LibrarysOwn own(b_);
  b_.load_context(x86::r11);
  Mem word = x86::qword_ptr(x86::r11, sampler::tally_offset(static_cast<uint32_t>(i.imm)));
  i.a == kNoOperand ? a_.inc(word) : a_.add(word, gp_at(i, i.a));
}

void Emitter::observe(const MInst& i) {
  CodeBuffer::LibrarysOwn own(b_);
  switch (kind_of(i)) {
    case ProbeKind::kCounter: {
      Gp base = slab_base(i);
      a_.add(x86::qword_ptr(base, offset_of(i)), gp_at(i, i.b));
      return;
    }
    case ProbeKind::kGauge: {
      Gp base = slab_base(i);
      a_.mov(x86::qword_ptr(base, offset_of(i)), gp_at(i, i.b));
      return;
    }
    case ProbeKind::kRange: return observe_in_range(i);
    case ProbeKind::kLog: return log(i);
    default: return observe_in_table(i);
  }
}

// The slab is in a register other than r11.
void Emitter::observe_in_range(const MInst& i) {
  Gp slab = gp_at(i, i.a), rank = x86::r11;
  a_.mov(rank, gp_at(i, i.b));
  a_.btc(rank, imm(63));
  count_in_range(b_, a_, rank, [&](uint32_t n) {
    return x86::qword_ptr(slab, offset_of(i) + 8 * static_cast<int32_t>(n));
  });
}

// The code checks the first entry; a routine does the rest:
//
//   mov r11, slab
//   cmp [r11 + key], value               slow: push shape; push value; push offset
//   jne slow                                   call routine
//   inc qword [r11 + count]                    jmp back
//   back:
void Emitter::observe_in_table(const MInst& i) {
  slab_to_scratch(i);
  bool sums = kind_of(i) == ProbeKind::kValue;
  auto shape = sampler::TableShape::unpack(static_cast<uint32_t>(i.disp), sums);
  int32_t first = offset_of(i) + 8 * static_cast<int32_t>(shape.entries_at());
  a_.cmp(x86::qword_ptr(x86::r11, first), gp_at(i, i.b));
  probe_calls_.push_back({b_.new_label(), b_.new_label(), &i});
  a_.jne(probe_calls_.back().slow);
  a_.inc(x86::qword_ptr(x86::r11, first + 8));
  b_.bind(probe_calls_.back().back);
}

// Pushes the place, method << 32 | site, in two parts. The method is the one that the code was
// inlined from.
void Emitter::log(const MInst& i) {
  slab_to_scratch(i);
  uint32_t body = i.loc.body;
  MethodId of = body == 0 ? in_.compile.method : in_.function.inlined[body - 1].method;
  a_.push(imm(site_of(i)));
  a_.mov(x86::dword_ptr(x86::rsp, 4), imm(of.number()));
  a_.push(imm(i.disp));
  a_.push(gp_at(i, i.b));
  a_.push(imm(offset_of(i)));
  b_.call_address(in_.compile.helpers.probes[static_cast<uint32_t>(ProbeRoutine::kLog)]);
}

void Emitter::probe_calls() {
  CodeBuffer::LibrarysOwn own(b_);
  for (const ProbeCall& p : probe_calls_) {
    bool sums = kind_of(*p.from) == ProbeKind::kValue;
    auto routine = static_cast<uint32_t>(sums ? ProbeRoutine::kValue : ProbeRoutine::kTarget);
    b_.bind(p.slow);
    a_.push(imm(p.from->disp));
    a_.push(gp_at(*p.from, p.from->b));
    a_.push(imm(offset_of(*p.from)));
    b_.call_address(in_.compile.helpers.probes[routine]);
    a_.jmp(p.back);
  }
}

}  // namespace uptier::jit::x64
