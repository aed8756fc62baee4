#include "tiering/runtime/traps.h"

#include <cassert>

#include "jit/code/code.h"
#include "jit/code/code_registry.h"

namespace uptier::tiering {
namespace {

// Stores in `t` which call the trap ended: a call of a host function, or an exit of optimized code.
void tell_caller(Trap& t, const void* returns_to) {
  const jit::Code* code = jit::find_code(static_cast<const uint8_t*>(returns_to) - 1);
  if (code == nullptr) return;  // the invoke itself made the call
  t.method = code->method();
  if (const jit::CallRow* row = code->call_at(returns_to)) {
    t.method = code->method_of(row->body);
    t.location = row->loc;
  } else if (const jit::ExitRow* exit = code->exit_at(returns_to)) {
    t.method = code->method_of(code->tables().exit_frames[exit->frames_at].body);
    t.location = exit->loc;
  }
}

}  // namespace

void lose_trap(sampler::ThreadContext& c) noexcept {
  c.traps_lost.store(c.traps_lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void put_trap(sampler::ThreadContext& c, TrapCode code, uint64_t detail) noexcept {
  assert(code != TrapCode::kNone);
  constexpr auto kInterrupted = static_cast<uint32_t>(TrapCode::kInterrupted);
  if (c.pending_trap != 0 && c.pending_trap != kInterrupted) lose_trap(c);
  c.trap_detail = detail;
  c.trap_pc = 0;
  c.trap_location = 0;
  c.trap_method = 0;
  c.pending_trap = static_cast<uint32_t>(code);
}

Trap take_trap(sampler::ThreadContext& c) {
  assert(c.pending_trap != 0);
  Trap t;
  t.code = static_cast<TrapCode>(c.pending_trap);
  t.location = c.trap_location;
  t.detail = c.trap_detail;
  if (c.trap_pc != 0) {
    const auto* pc = reinterpret_cast<const void*>(c.trap_pc);
    const jit::Code* code = jit::find_code(pc);
    const jit::TrapRow* row = code == nullptr ? nullptr : code->trap_at(pc);
    if (code != nullptr) t.method = code->method_of(row == nullptr ? 0 : row->body);
  } else if (c.trap_method != 0) {
    t.method = MethodId(c.trap_method - 1);
  } else if (c.trap_return != 0) {
    tell_caller(t, reinterpret_cast<const void*>(c.trap_return));
  }
  if (!c.trap_walked) c.trap_frame_count = 0;  // it did not end compiled code
  c.trap_walked = false;
  c.trap_return = 0;
  c.pending_trap = 0;
  c.trap_pc = 0;
  c.trap_detail = 0;
  c.trap_location = 0;
  c.trap_method = 0;
  return t;
}

void raise_no_code(MethodId m) noexcept {
  sampler::ThreadContext& c = *sampler::current_context();
  put_trap(c, TrapCode::kNoCode, 0);
  c.trap_method = m.number() + 1;
}

jit::Leave leave_by_trap(TrapCode code) noexcept {
  put_trap(*sampler::current_context(), code, 0);
  return jit::Leave::kTrap;
}

}  // namespace uptier::tiering
