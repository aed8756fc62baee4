#include "jit/code/end_body.h"

#include <ucontext.h>

#include "jit/code/code_registry.h"
#include "sampler/context.h"

namespace uptier::jit {
namespace {

constexpr greg_t kDirectionFlag = 0x400;
constexpr uint8_t kRet = 0xc3;
// endbr64 (or not); push rbp; mov rbp, rsp
constexpr uint32_t kUsualPrologue = 8;

// NOLINTBEGIN(performance-no-int-to-ptr): registers hold addresses
bool knows_frame(const Code& code, const void* pc) {
  if (!code.tables().frames.empty()) return true;
  uint32_t into = code.offset_of(pc) - code.entry_offset();
  return into >= kUsualPrologue && *static_cast<const uint8_t*>(pc) != kRet;
}

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
  if (body == nullptr || context.activation == nullptr || !knows_frame(*body, pc)) return false;
  const void* exit = trap_exit_for(pc);
  if (exit == nullptr) return false;
  context.pending_trap = static_cast<uint32_t>(code);
  context.trap_location = 0;
  context.trap_method = 0;
  context.trap_detail = 0;
  context.trap_pc = reinterpret_cast<uintptr_t>(pc);
  complete_frame(body->frame_at(pc).kind, registers);
  registers[REG_RIP] = reinterpret_cast<greg_t>(exit);
  registers[REG_EFL] &= ~kDirectionFlag;
  return true;
}
// NOLINTEND(performance-no-int-to-ptr)

}  // namespace uptier::jit
