#include "embed/wasm/helpers.h"

#include <alloca.h>

#include <algorithm>
#include <cstring>

#include "embed/wasm/instance.h"
#include "uptier/interrupted.h"

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
  constexpr TrapCode kMemory = TrapCode::kOutOfBoundsMemory;
  constexpr TrapCode kTable = TrapCode::kOutOfBoundsTable;
  auto checked = [](const char* name, auto* f, unsigned words, bool takes_segment, TrapCode trap) {
    return Helper{{name, address_of(f), signature(words, Type::kI32)}, takes_segment, trap};
  };
  auto bulk = [](const char* name, auto* f, uint8_t flag) {
    return Helper{host_function(name, f), false, kMemory, flag};
  };
  switch (op) {
    case Op::kMemoryGrow:
      return checked("uptier_wasm_memory_grow", uptier_wasm_memory_grow, 1, false, TrapCode::kNone);
    case Op::kMemoryFill:
      return bulk("uptier_wasm_memory_fill", uptier_wasm_memory_fill, kCallFills);
    case Op::kMemoryCopy:
      return bulk("uptier_wasm_memory_copy", uptier_wasm_memory_copy, kCallCopies);
    case Op::kMemoryInit:
      return checked("uptier_wasm_memory_init", uptier_wasm_memory_init, 4, true, kMemory);
    case Op::kTableCopy:
      return checked("uptier_wasm_table_copy", uptier_wasm_table_copy, 3, false, kTable);
    case Op::kTableInit:
      return checked("uptier_wasm_table_init", uptier_wasm_table_init, 4, true, kTable);
    case Op::kElemDrop:
      return {{"uptier_wasm_elem_drop", address_of(uptier_wasm_elem_drop), signature(1)}, true};
    case Op::kDataDrop:
      return {{"uptier_wasm_data_drop", address_of(uptier_wasm_data_drop), signature(1)}, true};
    default: return {};
  }
}

HostFunction call_host_helper() {
  return {"uptier_wasm_call_host", address_of(uptier_wasm_call_host), signature(0)};
}

namespace {

// Gigabytes take seconds, and a guest that is to end does not get their rest: it ends when the
// helper returns. A piece takes some milliseconds, pages that are new included.
constexpr size_t kPiece = 16 << 20;

void fill(uint8_t* to, int byte, size_t count) noexcept {
  for (; count > kPiece; to += kPiece, count -= kPiece) {
    std::memset(to, byte, kPiece);
    if (interrupted()) return;
  }
  std::memset(to, byte, count);
}

// From the end that is not overwritten before it is read.
void copy(uint8_t* to, const uint8_t* from, size_t count) noexcept {
  bool up = to <= from;
  for (; count > kPiece; count -= kPiece) {
    size_t at = up ? 0 : count - kPiece;
    std::memmove(to + at, from + at, kPiece);
    if (interrupted()) return;
    to += up ? kPiece : 0;
    from += up ? kPiece : 0;
  }
  std::memmove(to, from, count);
}

}  // namespace
}  // namespace uptier::wasm

using uptier::wasm::FuncRef;
using uptier::wasm::HostContext;
using uptier::wasm::Memory;
using uptier::wasm::Table;
using uptier::wasm::VmContext;

extern "C" {

int32_t uptier_wasm_memory_grow(VmContext* c, uint32_t delta) noexcept {
  return c->instance->memory()->grow(delta);
}

uint32_t uptier_wasm_memory_fill(VmContext* c, uint8_t*, uint32_t to, uint32_t value,
                                 uint32_t count) noexcept {
  Memory& m = *c->instance->memory();
  if (!m.contains(to, count)) return 1;
  if (count != 0) uptier::wasm::fill(m.bytes().data() + to, static_cast<int>(value & 0xff), count);
  return 0;
}

uint32_t uptier_wasm_memory_copy(VmContext* c, uint8_t*, uint32_t to, uint32_t from,
                                 uint32_t count) noexcept {
  Memory& m = *c->instance->memory();
  if (!m.contains(to, count) || !m.contains(from, count)) return 1;
  if (count != 0) uptier::wasm::copy(m.bytes().data() + to, m.bytes().data() + from, count);
  return 0;
}

uint32_t uptier_wasm_memory_init(VmContext* c, uint32_t segment, uint32_t to, uint32_t from,
                                 uint32_t count) noexcept {
  return c->instance->memory_init(segment, to, from, count) ? 0 : 1;
}

void uptier_wasm_data_drop(VmContext* c, uint32_t segment) noexcept {
  c->instance->drop_data(segment);
}

uint32_t uptier_wasm_table_copy(VmContext* c, uint32_t to, uint32_t from, uint32_t count) noexcept {
  Table& t = *c->instance->table();
  if (!t.contains(to, count) || !t.contains(from, count)) return 1;
  FuncRef* entries = t.entries().data();
  if (count != 0) std::memmove(entries + to, entries + from, uint64_t{count} * sizeof(FuncRef));
  return 0;
}

uint32_t uptier_wasm_table_init(VmContext* c, uint32_t segment, uint32_t to, uint32_t from,
                                uint32_t count) noexcept {
  return c->instance->table_init(segment, to, from, count) ? 0 : 1;
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
