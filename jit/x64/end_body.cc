#include "jit/code/end_body.h"

#include <ucontext.h>

#include "jit/code/code_registry.h"
#include "jit/code/frame_kind.h"
#include "sampler/context.h"

namespace uptier::jit {
namespace {

constexpr greg_t kEflagsDirection = 0x400;

// NOLINTBEGIN(performance-no-int-to-ptr): registers hold addresses

void complete_frame(FrameState::Kind kind, greg_t* registers) {
  if (kind == FrameState::Kind::kMade) return;
  if (kind == FrameState::Kind::kNone) {
    registers[REG_RSP] -= 8;
    *reinterpret_cast<greg_t*>(registers[REG_RSP]) = registers[REG_RBP];
  }
  registers[REG_RBP] = registers[REG_RSP];
}

}  // namespace

bool end_body(void* machine, TrapCode code) noexcept {
  greg_t* registers = static_cast<ucontext_t*>(machine)->uc_mcontext.gregs;
  auto* pc = reinterpret_cast<const void*>(registers[REG_RIP]);
  const Code* body = find_code(pc);
  sampler::ThreadContext& context = *sampler::current_context();
  if (body == nullptr || context.activation == nullptr) return false;
  const void* exit = trap_exit_for(pc);
  if (exit == nullptr) return false;
  context.pending_trap = static_cast<uint32_t>(code);
  context.trap_location = 0;
  context.trap_method = 0;
  context.trap_detail = 0;
  context.trap_pc = reinterpret_cast<uintptr_t>(pc);
  complete_frame(frame_kind_at(*body, pc), registers);
  registers[REG_RIP] = reinterpret_cast<greg_t>(exit);
  registers[REG_EFL] &= ~kEflagsDirection;
  return true;
}
// NOLINTEND(performance-no-int-to-ptr)

}  // namespace uptier::jit
