// helpers.h: the C functions that compiled code calls.
//
// They throw nothing and allocate nothing but guest memory. Bulk instructions return 1 when a range
// is outside, having changed nothing, and the calling code traps at the instruction's own place.
#pragma once

#include <cstdint>

#include "embed/wasm/code_reader.h"
#include "embed/wasm/vmctx.h"
#include "uptier/builder.h"

extern "C" {
int32_t uptier_wasm_memory_grow(uptier::wasm::VmContext* c, uint32_t delta) noexcept;
uint32_t uptier_wasm_memory_fill(uptier::wasm::VmContext* c, uint8_t* base, uint32_t to,
                                 uint32_t value, uint32_t count) noexcept;
uint32_t uptier_wasm_memory_copy(uptier::wasm::VmContext* c, uint8_t* base, uint32_t to,
                                 uint32_t from, uint32_t count) noexcept;
uint32_t uptier_wasm_memory_init(uptier::wasm::VmContext* c, uint32_t segment, uint32_t to,
                                 uint32_t from, uint32_t count) noexcept;
void uptier_wasm_data_drop(uptier::wasm::VmContext* c, uint32_t segment) noexcept;
uint32_t uptier_wasm_table_copy(uptier::wasm::VmContext* c, uint32_t to, uint32_t from,
                                uint32_t count) noexcept;
uint32_t uptier_wasm_table_init(uptier::wasm::VmContext* c, uint32_t segment, uint32_t to,
                                uint32_t from, uint32_t count) noexcept;
void uptier_wasm_elem_drop(uptier::wasm::VmContext* c, uint32_t segment) noexcept;
void uptier_wasm_call_host(uptier::wasm::HostContext* c) noexcept;
}

namespace uptier::wasm {

// An instruction that a helper executes. Its operands come from the stack, after the context and (if
// any) the number of the segment, or the memory's base.
struct Helper {
  HostFunction function;
  bool takes_segment = false;
  TrapCode trap = TrapCode::kNone;  // when the helper returns 1; none: the result is an operand
  uint8_t bulk = 0;                 // kCallCopies or kCallFills: it takes the base
};

// Returns the helper for memory.grow or a bulk instruction; one without an address for others.
Helper helper_for(Op op);

// Returns the helper of adapters for host functions: (ref HostContext).
HostFunction call_host_helper();

}  // namespace uptier::wasm
