// Loads and stores.
#include "jit/baseline/selector.h"
#include "jit/ir/fuel_flag.h"
#include "jit/x64/fuel_operand.h"

namespace uptier::jit::baseline {

Mem Selector::address(const Inst& i, size_t first) {
  auto args = f_.args(i);
  Value base = args[first];
  if (is_fuel(i)) return fuel_operand();
  auto offset = static_cast<uint32_t>(i.imm);
  if (args.size() == first + 1 && is_frame_memory(base)) {
    return x86::ptr(x86::rbp, frame_.memory + static_cast<int32_t>(offset));
  }
  if (args.size() == first + 1) return emit_address(b_, values_.gp_of(base), offset, kScratch);
  Value index = args[first + 1];
  if (values_.is_constant(index)) {
    uint64_t total = values_.constant_bits(index) + offset;
    Gp register_of_base = values_.gp_of(base);
    if (total <= INT32_MAX) return x86::ptr(register_of_base, static_cast<int32_t>(total));
    emit_constant(b_, kScratch, total);
    return x86::ptr(register_of_base, kScratch);
  }
  Gp register_of_base = values_.gp_of(base);
  return emit_address(b_, register_of_base, values_.index_of(index), offset, kScratch);
}

bool Selector::is_frame_memory(Value v) const {
  if (frame_.memory == 0) return false;
  InstId id = f_.value(v).inst;
  return id.valid() && f_.inst(id).op == Opcode::kFrameMemory;
}

// Registers that the string operation wants may hold arguments of the function.
void Selector::frame_memory(const Inst& i) {
  for (Gp r : {x86::rdi, x86::rcx, x86::rax}) a_.push(r);
  a_.lea(x86::rdi, x86::ptr(x86::rbp, frame_.memory));
  a_.mov(x86::ecx, imm(i.imm / 8));
  a_.xor_(x86::eax, x86::eax);
  a_.rep().stosq();
  for (Gp r : {x86::rax, x86::rcx, x86::rdi}) a_.pop(r);
  Gp d = values_.new_gp();
  a_.lea(d, x86::ptr(x86::rbp, frame_.memory));
  values_.define(i.result, d);
}

void Selector::use_address(const Inst& i, size_t first) {
  auto args = f_.args(i);
  for (size_t n = first; n < args.size(); ++n) values_.use(args[n]);
}

void Selector::row(const Inst& i) {
  if ((i.flags & kMemTraps) != 0) b_.trap_row(TrapCode::kOutOfBoundsMemory, i.loc);
}

void Selector::load(const Inst& i) {
  Mem at = address(i, 0);
  use_address(i, 0);
  if (is_float(i.type)) {
    Xmm d = values_.new_xmm();
    row(i);
    emit_load(b_, i.type, d, at);
    return values_.define(i.result, d);
  }
  Gp d = values_.new_gp();
  row(i);
  emit_load(b_, i.op, i.type, d, at);
  values_.define(i.result, d);
}

void Selector::store(const Inst& i) {
  Value v = f_.args(i)[0];
  if (values_.is_immediate(v)) {
    Mem at = address(i, 1);
    if (store_constant(i, at)) {
      use_address(i, 1);
      return values_.use(v);
    }
  }
  if (is_float(i.type)) {
    Xmm source = values_.xmm_of(v);
    Mem at = address(i, 1);
    row(i);
    emit_store(b_, i.type, at, source);
  } else {
    Gp source = values_.gp_of(v);
    Mem at = address(i, 1);
    row(i);
    emit_store(b_, i.op, i.type, at, source);
  }
  use_address(i, 1);
  values_.use(v);
}

void Selector::bulk(const Inst& i) {
  auto args = f_.args(i);
  values_.take_in(args[2], Gp::kIdCx);
  values_.take_in(args[1], Gp::kIdDi);
  values_.take_in(args[0], i.op == Opcode::kCopy ? Gp::kIdSi : Gp::kIdAx);
  row(i);
  emit_bulk(b_, i.op, static_cast<uint32_t>(i.imm));
}

// Returns false for widths that have no form with an immediate.
bool Selector::store_constant(const Inst& i, Mem at) {
  auto bits = static_cast<int32_t>(values_.constant_bits(f_.args(i)[0]));
  uint32_t size = is_wide(i.type) ? 8 : 4;
  if (i.op == Opcode::kStore8) size = 1;
  if (i.op == Opcode::kStore16) size = 2;
  if (i.op == Opcode::kStore32) size = 4;
  // The assembler takes narrow immediates by their unsigned value.
  if (size == 1) bits &= 0xff;
  if (size == 2) bits &= 0xffff;
  at.setSize(size);
  row(i);
  a_.mov(at, imm(bits));
  return true;
}

}  // namespace uptier::jit::baseline
