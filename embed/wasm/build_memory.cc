// Memory and globals of FunctionTranslator.
#include "embed/wasm/build_function.h"

namespace uptier::wasm {
namespace {

struct AccessRow {
  Opcode op;
  Type type;
  uint32_t width;  // bytes
};

// By instruction byte, from Op::kFirstLoad to Op::kLastStore.
constexpr AccessRow kAccesses[] = {
    {Opcode::kLoad, Type::kI32, 4},    {Opcode::kLoad, Type::kI64, 8},
    {Opcode::kLoad, Type::kF32, 4},    {Opcode::kLoad, Type::kF64, 8},
    {Opcode::kLoad8S, Type::kI32, 1},  {Opcode::kLoad8U, Type::kI32, 1},
    {Opcode::kLoad16S, Type::kI32, 2}, {Opcode::kLoad16U, Type::kI32, 2},
    {Opcode::kLoad8S, Type::kI64, 1},  {Opcode::kLoad8U, Type::kI64, 1},
    {Opcode::kLoad16S, Type::kI64, 2}, {Opcode::kLoad16U, Type::kI64, 2},
    {Opcode::kLoad32S, Type::kI64, 4}, {Opcode::kLoad32U, Type::kI64, 4},
    {Opcode::kStore, Type::kI32, 4},   {Opcode::kStore, Type::kI64, 8},
    {Opcode::kStore, Type::kF32, 4},   {Opcode::kStore, Type::kF64, 8},
    {Opcode::kStore8, Type::kI32, 1},  {Opcode::kStore16, Type::kI32, 2},
    {Opcode::kStore8, Type::kI64, 1},  {Opcode::kStore16, Type::kI64, 2},
    {Opcode::kStore32, Type::kI64, 4},
};

const AccessRow& access_row(Op op) {
  return kAccesses[static_cast<size_t>(op) - static_cast<size_t>(Op::kFirstLoad)];
}

}  // namespace

// Loads a word of the context that does not change while code runs.
Value FunctionTranslator::load_context(Type type, uint32_t offset) {
  return b_.load(Opcode::kLoad, type, {.base = ctx_, .offset = offset, .flags = kMemInvariant});
}

Value FunctionTranslator::memory_record() {
  return load_context(Type::kRef, offsetof(VmContext, memory));
}

// Returns what helpers that copy and fill take for the base: it is theirs to look where it may move.
Value FunctionTranslator::stable_base() {
  if (!is_guarded(context_.bounds)) return b_.ref(nullptr);
  if (memory_base_.valid()) return memory_base_;
  return load_context(Type::kRef, offsetof(VmContext, memory_base));
}

// Pops the index. Guarded: the sum of index and offset is inside the reservation, so the access
// itself is the check. Explicit: index + offset + width <= size, in 64 bits without overflow.
Address FunctionTranslator::memory_address(uint32_t offset, uint32_t width) {
  Value index = pop();
  if (is_guarded(context_.bounds)) {
    const uint8_t fence = context_.bounds == Bounds::kGuarded ? kMemFenced : kMemNone;
    const auto flags = static_cast<uint8_t>(kMemTraps | fence | kInMemory);
    return {.base = memory_base_, .index = index, .offset = offset, .flags = flags};
  }
  Value record = memory_record();
  Value size =
      b_.load(Opcode::kLoad, Type::kI64,
              {.base = record, .offset = offsetof(MemoryRecord, size), .flags = kInRecord});
  Value end = b_.binary(Opcode::kAdd, b_.convert(Opcode::kExtendU, Type::kI64, index),
                        b_.i64(static_cast<int64_t>(uint64_t{offset} + width)));
  b_.trap_if(b_.binary(Opcode::kGtU, end, size), TrapCode::kOutOfBoundsMemory);
  Value base =
      b_.load(Opcode::kLoad, Type::kRef,
              {.base = record, .offset = offsetof(MemoryRecord, base), .flags = kInRecord});
  return {.base = base, .index = index, .offset = offset, .flags = kInMemory};
}

void FunctionTranslator::on_load(Op op) {
  const AccessRow& row = access_row(op);
  Address at = memory_address(reader_.mem_arg().offset, row.width);
  push(b_.load(row.op, row.type, at));
}

void FunctionTranslator::on_store(Op op) {
  const AccessRow& row = access_row(op);
  Value v = pop();
  Address at = memory_address(reader_.mem_arg().offset, row.width);
  b_.store(row.op, v, at);
}

void FunctionTranslator::on_memory_size() {
  reader_.skip(immediates_of(Op::kMemorySize));
  push(b_.load(
      Opcode::kLoad, Type::kI32,
      {.base = memory_record(), .offset = offsetof(MemoryRecord, pages), .flags = kInRecord}));
}

Address FunctionTranslator::global_address(uint32_t index) {
  uint32_t offset = context_.layout.global(index);
  if (index < info_.imported_globals) {
    return {.base = load_context(Type::kRef, offset), .flags = kInShared};
  }
  uint8_t place = info_.globals[index].is_exported ? kInShared : kInOwn;
  return {.base = ctx_, .offset = offset, .flags = place};
}

void FunctionTranslator::on_global_get(uint32_t index) {
  const GlobalInfo& g = info_.globals[index];
  bool is_own = index >= info_.imported_globals;
  if (is_own && !g.type.is_mutable && !g.init.global) {
    return push(b_.constant(g.type.type, g.init.bits));
  }
  uint8_t flags = g.type.is_mutable ? kMemNone : kMemInvariant;
  Address at = global_address(index);
  at.flags |= flags;
  push(b_.load(Opcode::kLoad, g.type.type, at));
}

void FunctionTranslator::on_global_set(uint32_t index) {
  Value v = pop();
  b_.store(Opcode::kStore, v, global_address(index));
}

}  // namespace uptier::wasm
