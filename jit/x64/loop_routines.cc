#include "jit/code/loop_routines.h"

#include "jit/x64/emit_routines.h"
#include "jit/x64/macros.h"
#include "sampler/fast_sample.h"

namespace uptier::jit {
namespace {

using namespace asmjit::x86;
using sampler::FastSampling;
using sampler::LoopCell;
using sampler::MethodState;

constexpr Gp kMethod = rdi, kLoop = rsi;
constexpr Gp kContext = r10;
constexpr Gp kState = r11;  // the address of the method's MethodState minus kMethodsOffset
constexpr Gp kCell = r8;

Mem field(size_t offset, uint32_t size) {
  return ptr(kState, static_cast<int32_t>(sampler::kMethodsOffset + offset), size);
}

uint64_t address(const void* p) { return reinterpret_cast<uintptr_t>(p); }
template <typename F>
uint64_t address(F* f) {
  return reinterpret_cast<uintptr_t>(f);
}

// Fills kContext, kState and kCell. Changes rax and r9.
void emit_find(CodeBuffer& b, const LoopRoutines& r, const Label& ask) {
  Assembler& a = b.assembler();
  static_assert(sizeof(MethodState) == 1 << 7 && FastSampling::kMethodBytes == 3 * 8 &&
                sizeof(LoopCell) == 3 * 8);
  b.load_context(kContext);
  a.mov(rax, imm(address(r.runtime)));
  a.cmp(qword_ptr(kContext, sampler::kRuntimeOffset), rax);
  a.jne(ask);
  a.mov(kState.r32(), kMethod.r32());
  a.shl(kState, imm(7));
  a.add(kState, kContext);
  a.mov(rax, imm(address(r.methods)));
  a.lea(r9, ptr(kMethod, kMethod, 1));
  a.mov(kCell, qword_ptr(rax, r9, 3, FastSampling::kLoopsAt));
  a.test(kCell, kCell);
  a.jz(ask);
  a.lea(r9, ptr(kLoop, kLoop, 1));
  a.lea(kCell, ptr(kCell, r9, 3));
}

// Moves the frame to the other copy: counts the transfer and returns the address to continue at.
void emit_go(CodeBuffer& b, size_t address_at, size_t offset_at) {
  Assembler& a = b.assembler();
  Label uncounted = b.new_label();
  a.mov(eax, dword_ptr(kCell, static_cast<int32_t>(offset_at)));
  a.mov(r9, field(offsetof(MethodState, slab), 8));
  a.cmp(eax, imm(LoopCell::kNone));
  a.short_().je(uncounted);
  a.inc(qword_ptr(r9, rax));
  b.bind(uncounted);
  a.mov(rax, qword_ptr(kCell, static_cast<int32_t>(address_at)));
  a.ret();
}

void emit_count(Assembler& a) {
  a.inc(qword_ptr(kContext, static_cast<int32_t>(sampler::kQuickLoopEventsOffset)));
}

void emit_ask(Assembler& a, LoopSlow slow) {
  a.mov(rax, imm(address(slow)));
  a.jmp(rax);
}

}  // namespace

void emit_loop_plain(CodeBuffer& b, const LoopRoutines& r) {
  Assembler& a = b.assembler();
  Label ask = b.new_label(), begin = b.new_label();
  emit_find(b, r, ask);
  a.mov(eax, field(offsetof(MethodState, loop_countdown), 4));
  a.test(eax, eax);
  a.short_().jns(begin);
  // Undoes the check's decrement, and counts this arrival in the burst: the countdown goes up by
  // two.
  a.add(eax, imm(2));
  a.short_().jns(ask);
  a.mov(field(offsetof(MethodState, loop_countdown), 4), eax);
  emit_count(a);
  emit_go(b, offsetof(LoopCell, instrumented), offsetof(LoopCell, enter));
  b.bind(begin);
  a.push(kMethod);
  a.push(kLoop);
  a.sub(rsp, imm(8));
  a.mov(rdx, kContext);
  a.mov(rcx, imm(address(r.data)));
  a.mov(rax, imm(address(r.begin)));
  a.call(rax);
  a.add(rsp, imm(8));
  a.pop(kLoop);
  a.pop(kMethod);
  a.mov(rdx, rbp);
  a.mov(rcx, imm(address(r.runtime)));
  a.test(rax, rax);
  a.short_().jz(ask);
  a.ret();
  b.bind(ask);
  emit_ask(a, r.plain);
}

void emit_loop_instrumented(CodeBuffer& b, const LoopRoutines& r) {
  Assembler& a = b.assembler();
  Label ask = b.new_label(), stretch = b.new_label(), go = b.new_label();
  emit_find(b, r, ask);
  a.mov(eax, field(offsetof(MethodState, loop_countdown), 4));
  a.test(eax, eax);
  a.short_().jg(stretch);
  a.short_().jne(ask);
  a.mov(eax, field(offsetof(MethodState, behind), 4));
  a.test(eax, eax);
  a.short_().jz(ask);
  a.mov(field(offsetof(MethodState, loop_countdown), 4), eax);
  a.sub(eax, field(offsetof(MethodState, loop_gap), 4));
  a.mov(field(offsetof(MethodState, loop_gap), 4), eax);
  a.mov(field(offsetof(MethodState, behind), 8), imm(0));
  b.bind(go);
  emit_go(b, offsetof(LoopCell, plain), offsetof(LoopCell, leave));
  // Undoes the check's increment, and counts this arrival in the gap like any other: the countdown
  // goes down by two.
  b.bind(stretch);
  a.sub(eax, imm(2));
  a.short_().jle(ask);
  a.mov(field(offsetof(MethodState, loop_countdown), 4), eax);
  emit_count(a);
  a.short_().jmp(go);
  b.bind(ask);
  emit_ask(a, r.instrumented);
}

}  // namespace uptier::jit
