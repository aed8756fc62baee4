// Loads and stores.
#include "jit/x64/baseline_assembler.h"

#include "jit/x64/fuel_operand.h"

namespace uptier::jit::x64 {

Mem BaselineAssembler::address(const Access& at) {
  if (at.fuel) return fuel_operand();
  if (at.in_frame) {
    return x86::ptr(x86::rbp, in_.frame.memory + static_cast<int32_t>(at.offset));
  }
  if (!at.index.valid()) return emit_address(b_, values_.gp_of(at.base), at.offset, kScratch);
  if (values_.is_constant(at.index)) {
    uint64_t total = values_.constant_bits(at.index) + at.offset;
    Gp register_of_base = values_.gp_of(at.base);
    if (total <= INT32_MAX) return x86::ptr(register_of_base, static_cast<int32_t>(total));
    emit_constant(b_, kScratch, total);
    return x86::ptr(register_of_base, kScratch);
  }
  Gp register_of_base = values_.gp_of(at.base);
  return emit_address(b_, register_of_base, values_.index_of(at.index), at.offset, kScratch);
}

// rdi, rcx and rax are pushed because they may hold arguments of the function.
void BaselineAssembler::frame_memory(Value result, uint64_t bytes) {
  for (const Gp& r : {x86::rdi, x86::rcx, x86::rax}) a_.push(r);
  a_.lea(x86::rdi, x86::ptr(x86::rbp, in_.frame.memory));
  a_.mov(x86::ecx, imm(bytes / 8));
  a_.xor_(x86::eax, x86::eax);
  a_.rep().stosq();
  for (const Gp& r : {x86::rax, x86::rcx, x86::rdi}) a_.pop(r);
  Gp d = values_.new_gp();
  a_.lea(d, x86::ptr(x86::rbp, in_.frame.memory));
  values_.define(result, d);
}

void BaselineAssembler::use_address(const Access& at) {
  values_.use(at.base);
  if (at.index.valid()) values_.use(at.index);
}

void BaselineAssembler::row(bool traps, Origin loc) {
  if (traps) b_.trap_row(TrapCode::kOutOfBoundsMemory, loc);
}

void BaselineAssembler::load(Opcode op, Type t, Value result, const Access& at) {
  Mem from = address(at);
  use_address(at);
  if (is_float(t)) {
    Xmm d = values_.new_xmm();
    row(at.traps, at.loc);
    emit_load(b_, t, d, from);
    return values_.define(result, d);
  }
  Gp d = values_.new_gp();
  row(at.traps, at.loc);
  emit_load(b_, op, t, d, from);
  values_.define(result, d);
}

void BaselineAssembler::store(Opcode op, Type t, Value v, const Access& at) {
  if (values_.is_immediate(v)) {
    store_constant(op, t, v, address(at), at);
  } else if (is_float(t)) {
    Xmm source = values_.xmm_of(v);
    Mem to = address(at);
    row(at.traps, at.loc);
    emit_store(b_, t, to, source);
  } else {
    Gp source = values_.gp_of(v);
    Mem to = address(at);
    row(at.traps, at.loc);
    emit_store(b_, op, t, to, source);
  }
  use_address(at);
  values_.use(v);
}

void BaselineAssembler::bulk(Opcode op, Value from, Value to, Value count, uint32_t width,
                             bool traps, Origin loc) {
  values_.take_in(count, Gp::kIdCx);
  values_.take_in(to, Gp::kIdDi);
  values_.take_in(from, op == Opcode::kCopy ? Gp::kIdSi : Gp::kIdAx);
  row(traps, loc);
  emit_bulk(b_, op, width);
}

void BaselineAssembler::store_constant(Opcode op, Type t, Value v, Mem to, const Access& at) {
  auto bits = static_cast<int32_t>(values_.constant_bits(v));
  uint32_t size = is_wide(t) ? 8 : 4;
  if (op == Opcode::kStore8) size = 1;
  if (op == Opcode::kStore16) size = 2;
  if (op == Opcode::kStore32) size = 4;
  // The assembler expects narrow immediates as unsigned values.
  if (size == 1) bits &= 0xff;
  if (size == 2) bits &= 0xffff;
  to.setSize(size);
  row(at.traps, at.loc);
  a_.mov(to, imm(bits));
}

}  // namespace uptier::jit::x64
