// The code of Routines::leave and ask_to_leave: see code/leave.h.
#include "jit/code/leave.h"

#include <cstddef>
#include <iterator>

#include "jit/x64/code_buffer.h"
#include "jit/x64/emit_routines.h"

namespace uptier::jit {
namespace {

using namespace asmjit::x86;

constexpr Gp kCalleeSaved[] = {rbx, r12, r13, r14, r15};  // the same as machine::kSavedByLeave

Mem state_word(size_t offset) { return qword_ptr(rbx, static_cast<int32_t>(offset)); }

// Saves all registers but rsp; rbx then holds the address of the state.
void emit_save(Assembler& a) {
  a.sub(rsp, imm(offsetof(LeaveState, pc)));
  for (uint32_t r = 0; r < 16; ++r) {
    if (r != rsp.id()) a.mov(qword_ptr(rsp, static_cast<int32_t>(8 * r)), gpq(r));
  }
  for (uint32_t r = 0; r < 16; ++r) {
    a.movsd(qword_ptr(rsp, static_cast<int32_t>(offsetof(LeaveState, xmm) + 8 * r)), xmm(r));
  }
  a.mov(rbx, rsp);
}

void emit_stay(Assembler& a) {
  for (uint32_t r = 0; r < 16; ++r) a.movsd(xmm(r), state_word(offsetof(LeaveState, xmm) + 8 * r));
  for (uint32_t r = 0; r < 16; ++r) {
    if (r != rsp.id() && r != rbx.id() && r != rbp.id()) a.mov(gpq(r), state_word(8 * r));
  }
  a.lea(rsp, state_word(offsetof(LeaveState, pc)));
  a.mov(rbx, state_word(8 * rbx.id()));
  a.ret();
}

//   rsp = min(rsp, rbp - frames) - buffer
void emit_enter(CodeBuffer& b) {
  Assembler& a = b.assembler();
  Label below = b.new_label();
  a.mov(rcx, rbp);
  a.sub(rcx, state_word(offsetof(LeaveState, frame_bytes)));
  a.cmp(rcx, rsp);
  a.short_().ja(below);
  a.mov(rsp, rcx);
  b.bind(below);
  a.sub(rsp, state_word(offsetof(LeaveState, buffer_bytes)));
  a.and_(rsp, imm(-16));
  a.mov(rdi, rbx);
  a.mov(rsi, rsp);
  a.mov(rax, imm(reinterpret_cast<uintptr_t>(&uptier_write_frames)));
  a.call(rax);
  a.mov(r11, qword_ptr(rsp, offsetof(Arrival, target)));
  a.mov(rcx, qword_ptr(rsp, offsetof(Arrival, rsp)));
  for (size_t n = 0; n < std::size(kCalleeSaved); ++n) {
    a.mov(kCalleeSaved[n], qword_ptr(rsp, static_cast<int32_t>(offsetof(Arrival, saved) + 8 * n)));
  }
  a.mov(rax, qword_ptr(rsp, offsetof(Arrival, result)));
  a.movq(xmm0, rax);
  a.mov(rbp, qword_ptr(rsp, offsetof(Arrival, rbp)));
  a.mov(rsp, rcx);
  b.jump_untracked(r11);
}

void emit_return(Assembler& a) {
  a.mov(rax, state_word(offsetof(LeaveState, result)));
  a.movq(xmm0, rax);
  for (const Gp& r : kCalleeSaved) {
    if (r.id() != rbx.id()) a.mov(r, state_word(8 * r.id()));
  }
  a.mov(rbx, state_word(8 * rbx.id()));
  a.mov(rsp, rbp);
  a.pop(rbp);
  a.ret();
}

}  // namespace

void emit_leave(CodeBuffer& b, LeaveSlow slow, void* runtime, const Label& trap_exit, bool asks) {
  Assembler& a = b.assembler();
  Label enter = b.new_label(), give_back = b.new_label(), trap = b.new_label();
  emit_save(a);
  a.cld();
  a.mov(rdi, rbx);
  a.mov(rsi, imm(reinterpret_cast<uintptr_t>(runtime)));
  a.and_(rsp, imm(-16));
  a.mov(rax, imm(reinterpret_cast<uintptr_t>(slow)));
  a.call(rax);
  a.cmp(eax, imm(static_cast<int>(Leave::kReturn)));
  a.jb(enter);
  a.je(give_back);
  if (asks) {
    a.cmp(eax, imm(static_cast<int>(Leave::kTrap)));
    a.je(trap);
    emit_stay(a);
  }
  // Drops the state, and the return address of the call that led here.
  b.bind(trap);
  a.lea(rsp, state_word(sizeof(LeaveState)));
  a.jmp(trap_exit);
  b.bind(give_back);
  emit_return(a);
  b.bind(enter);
  emit_enter(b);
}

}  // namespace uptier::jit
