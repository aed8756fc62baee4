#include "embed/wasm/helpers.h"

#include <alloca.h>

#include <algorithm>
#include <cstring>

#include "embed/wasm/instance.h"
#include "uptier/runtime.h"

namespace uptier::wasm {
namespace {

template <typename F>
const void* address_of(F* f) {
  return reinterpret_cast<const void*>(f);
}

// (ref, `words` times i32) -> result
Signature signature(unsigned words, Type result = Type::kNone) {
  Signature s;
  s.params.assign(words + 1, Type::kI32);
  s.params[0] = Type::kRef;
  s.result = result;
  return s;
}

}  // namespace

Helper helper_for(Op op) {
  switch (op) {
    case Op::kMemoryGrow:
      return {{"uptier_wasm_memory_grow", address_of(uptier_wasm_memory_grow),
               signature(1, Type::kI32)},
              false,
              0};
    case Op::kMemoryFill:
      return {{"uptier_wasm_memory_fill", address_of(uptier_wasm_memory_fill), signature(3)},
              false,
              kCallMayTrap};
    case Op::kMemoryCopy:
      return {{"uptier_wasm_memory_copy", address_of(uptier_wasm_memory_copy), signature(3)},
              false,
              kCallMayTrap};
    case Op::kMemoryInit:
      return {{"uptier_wasm_memory_init", address_of(uptier_wasm_memory_init), signature(4)},
              true,
              kCallMayTrap};
    case Op::kTableCopy:
      return {{"uptier_wasm_table_copy", address_of(uptier_wasm_table_copy), signature(3)},
              false,
              kCallMayTrap};
    case Op::kTableInit:
      return {{"uptier_wasm_table_init", address_of(uptier_wasm_table_init), signature(4)},
              true,
              kCallMayTrap};
    case Op::kElemDrop:
      return {{"uptier_wasm_elem_drop", address_of(uptier_wasm_elem_drop), signature(1)}, true, 0};
    default:
      return {{"uptier_wasm_data_drop", address_of(uptier_wasm_data_drop), signature(1)}, true, 0};
  }
}

HostFunction call_host_helper() {
  return {"uptier_wasm_call_host", address_of(uptier_wasm_call_host), signature(0)};
}

}  // namespace uptier::wasm

using uptier::Runtime;
using uptier::TrapCode;
using uptier::wasm::FuncRef;
using uptier::wasm::HostContext;
using uptier::wasm::Memory;
using uptier::wasm::Table;
using uptier::wasm::VmContext;

extern "C" {

int32_t uptier_wasm_memory_grow(VmContext* c, uint32_t delta) noexcept {
  return c->instance->memory()->grow(delta);
}

void uptier_wasm_memory_fill(VmContext* c, uint32_t to, uint32_t value, uint32_t count) noexcept {
  Memory& m = *c->instance->memory();
  if (!m.contains(to, count)) return Runtime::raise(TrapCode::kOutOfBoundsMemory);
  if (count != 0) std::memset(m.bytes().data() + to, static_cast<int>(value & 0xff), count);
}

void uptier_wasm_memory_copy(VmContext* c, uint32_t to, uint32_t from, uint32_t count) noexcept {
  Memory& m = *c->instance->memory();
  if (!m.contains(to, count) || !m.contains(from, count)) {
    return Runtime::raise(TrapCode::kOutOfBoundsMemory);
  }
  if (count != 0) std::memmove(m.bytes().data() + to, m.bytes().data() + from, count);
}

void uptier_wasm_memory_init(VmContext* c, uint32_t segment, uint32_t to, uint32_t from,
                             uint32_t count) noexcept {
  if (!c->instance->memory_init(segment, to, from, count)) {
    Runtime::raise(TrapCode::kOutOfBoundsMemory);
  }
}

void uptier_wasm_data_drop(VmContext* c, uint32_t segment) noexcept {
  c->instance->drop_data(segment);
}

void uptier_wasm_table_copy(VmContext* c, uint32_t to, uint32_t from, uint32_t count) noexcept {
  Table& t = *c->instance->table();
  if (!t.contains(to, count) || !t.contains(from, count)) {
    return Runtime::raise(TrapCode::kOutOfBoundsTable);
  }
  if (count == 0) return;
  FuncRef* entries = t.entries().data();
  std::memmove(entries + to, entries + from, uint64_t{count} * sizeof(FuncRef));
}

void uptier_wasm_table_init(VmContext* c, uint32_t segment, uint32_t to, uint32_t from,
                            uint32_t count) noexcept {
  if (!c->instance->table_init(segment, to, from, count)) {
    Runtime::raise(TrapCode::kOutOfBoundsTable);
  }
}

void uptier_wasm_elem_drop(VmContext* c, uint32_t segment) noexcept {
  c->instance->drop_elem(segment);
}

// The words are shared by all calls of the function, also by those that the callback makes itself:
// arguments leave them before it runs, results enter them after.
void uptier_wasm_call_host(HostContext* c) noexcept {
  size_t count = std::max(c->param_count, c->result_count);
  auto* args = static_cast<uint64_t*>(alloca((count + 1) * sizeof(uint64_t)));
  auto* results = static_cast<uint64_t*>(alloca((c->result_count + 1) * sizeof(uint64_t)));
  std::copy_n(c->words, c->param_count, args);
  std::fill_n(results, c->result_count, 0);
  c->callback(c->env, *c->caller, args, results);
  std::copy_n(results, c->result_count, c->words);
}
}
